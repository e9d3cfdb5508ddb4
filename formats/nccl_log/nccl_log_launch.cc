#include "formats/nccl_log/nccl_log_launch.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <set>
#include <string>

#include "formats/nccl_log/nccl_log_parts.h"
#include "formats/nccl_log/nccl_log_words.h"

namespace syncline::calibrate {
namespace {

constexpr int kMost = 1 << 20;

// Returns a number of nodes or ranks; 0: it is none.
int count_in(std::string_view word) {
  const int count = number_of<int>(word).value_or(0);
  return count > 0 && count <= kMost ? count : 0;
}

// Stores a number; a second one that differs makes it unknown.
class Said {
 public:
  void take(int count) {
    if (count > 0) counts_.insert(count);
  }
  int only() const { return counts_.size() == 1 ? *counts_.begin() : 0; }

 private:
  std::set<int> counts_;
};

// Returns the value of an option at word `at`: "--nodes=4", "--nodes 4", "-N4"; empty: another.
std::string_view option_value(const Tokens& words, std::size_t at, std::string_view option) {
  std::string_view word = words[at];
  if (!word.starts_with(option)) return {};
  word.remove_prefix(option.size());
  if (word.empty()) return at + 1 < words.size() ? words[at + 1] : std::string_view();
  if (word.front() == '=') return word.substr(1);
  const bool brief = option.size() == 2 && word.find_first_not_of("0123456789") == word.npos;
  return brief ? word : std::string_view();
}

int option_in(const Tokens& words, std::initializer_list<std::string_view> options) {
  Said said;
  for (std::size_t at = 0; at < words.size(); ++at) {
    for (const std::string_view option : options)
      said.take(count_in(option_value(words, at, option)));
  }
  return said.only();
}

// Returns the processes of a node by "ppr:8:node".
int mapped_in(std::string_view line) {
  constexpr std::string_view kStart = "ppr:";
  const std::size_t at = line.find(kStart);
  if (at == line.npos) return 0;
  const std::string_view rest = line.substr(at + kStart.size());
  const std::size_t end = rest.find(":node");
  return end == rest.npos ? 0 : count_in(rest.substr(0, end));
}

// Returns the hosts of "-H a:8,b:8".
int hosts_in(const Tokens& words) {
  for (std::size_t at = 0; at < words.size(); ++at) {
    for (const std::string_view option : {"-H", "-host", "--host", "-hosts"}) {
      const std::string_view list = option_value(words, at, option);
      if (list.find(',') == list.npos) continue;
      return static_cast<int>(std::ranges::count(list, ',')) + 1;
    }
  }
  return 0;
}

// Returns a word without the mark of Markdown that ends a command.
std::string_view unmarked_end(std::string_view word) {
  while (!word.empty() && word.back() == '`') word.remove_suffix(1);
  return word;
}

// Returns the GPUs of a process by a test's command; 0: none. Several threads have GPUs each.
int gpus_each_in(std::string_view line, const Tokens& words) {
  if (find_test_program(line).empty()) return 0;
  const int gpus = option_in(words, {"-g", "--ngpus"}), threads = option_in(words, {"-t"});
  return gpus <= kMost / std::max(1, threads) ? gpus * std::max(1, threads) : 0;
}

// Returns a word without Markdown and brackets around it.
std::string_view unmarked(std::string_view word) {
  constexpr const char* kMarks = "*`_()[],;:.\"'";
  const std::size_t begin = word.find_first_not_of(kMarks);
  if (begin == word.npos) return {};
  return word.substr(begin, word.find_last_not_of(kMarks) - begin + 1);
}

bool is_unit_of(std::string_view word, std::initializer_list<std::string_view> list) {
  return std::ranges::count(list, word) > 0;
}

// Returns the number before a word of other languages that is joined with it or not, "2
// \u8282\u70b9".
int count_before(std::string_view line, std::string_view word) {
  std::size_t end = line.find(word);
  if (end == line.npos) return 0;
  while (end > 0 && line[end - 1] == ' ') --end;
  std::size_t begin = end;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  return count_in(line.substr(begin, end - begin));
}

// Reads the numbers of a sentence: "2 nodes", "2-node", "over 16 ranks", "16 GPUs".
SaidShape sentence_in(std::string_view line, const Tokens& words) {
  Said nodes, ranks, per_node;
  for (const std::string_view node : {"\u8282\u70b9", "\u30ce\u30fc\u30c9", "\ub178\ub4dc"})
    nodes.take(count_before(line, node));
  for (std::size_t at = 0; at < words.size(); ++at) {
    const std::string_view word = unmarked(words[at]);
    const std::size_t dash = word.find('-');
    const bool joined = dash != word.npos && dash > 0;
    const int count = count_in(joined ? word.substr(0, dash) : word);
    const std::string_view unit = joined                  ? word.substr(dash + 1)
                                  : at + 1 < words.size() ? unmarked(words[at + 1])
                                                          : "";
    if (is_unit_of(unit, {"node", "nodes", "Node", "Nodes", "hosts", "Hosts", "machines"}))
      nodes.take(count);
    const bool next = at + 2 < words.size() && !joined;
    const bool each = next && words[at + 2] == "per";
    if (is_unit_of(unit, {"ranks", "Ranks", "GPUs", "gpus"}) && !each) ranks.take(count);
    if (is_unit_of(unit, {"GPUs/node", "gpus/node", "ranks/node"}) ||
        (each && at + 3 < words.size() && unmarked(words[at + 3]) == "node"))
      per_node.take(count);
    if (word == "#processes" && at + 1 < words.size()) ranks.take(count_in(words[at + 1]));
  }
  return {nodes.only(), ranks.only(), per_node.only(), 0};
}

}  // namespace

SaidShape shape_in(std::string_view line) {
  Tokens words = split_words(line);
  for (std::string_view& word : words) word = unmarked_end(word);
  const auto has = [&](std::string_view name) { return line.find(name) != line.npos; };
  const bool slurm = has("srun ") || has("salloc ") || has("sbatch ") || has("#SBATCH");
  const bool mpi = has("mpirun ") || has("mpiexec ");
  if (!slurm && !mpi) {
    SaidShape said = sentence_in(line, words);
    if (said.nodes == 0) said.nodes = hosts_in(words);
    said.gpus_each = gpus_each_in(line, words);
    return said;
  }
  SaidShape said;
  if (slurm) {
    said.nodes = option_in(words, {"--nodes", "-N"});
    said.per_node = option_in(words, {"--ntasks-per-node"});
    said.ranks = option_in(words, {"--ntasks", "-n"});
  } else {
    said.nodes = hosts_in(words);
    said.ranks = option_in(words, {"-np", "-n"});
    said.per_node = std::max(option_in(words, {"-npernode", "--npernode", "-N", "-ppn", "--ppn"}),
                             mapped_in(line));
  }
  said.gpus_each = gpus_each_in(line, words);
  if (said.nodes == 0 && said.per_node > 0 && said.ranks % said.per_node == 0)
    said.nodes = said.ranks / said.per_node;
  return said;
}

}  // namespace syncline::calibrate
