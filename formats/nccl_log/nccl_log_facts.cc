#include "formats/nccl_log/nccl_log_facts.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <utility>

#include "formats/nccl_log/nccl_log_launch.h"

namespace syncline::calibrate {
namespace {

constexpr int kMaxLoggedRanks = 1 << 20;

// Reads the name after "device", its number and its bus: "NVIDIA H100 80GB HBM3".
std::string name_behind(const Tokens& tokens, std::size_t at) {
  // A blank may separate the bus from its bracket: "device  0 [0x07]", "device 0 [ 0x07]".
  while (at < tokens.size() && tokens[at].find(']') == std::string_view::npos) ++at;
  std::string name;
  for (++at; at < tokens.size(); ++at) {
    name += (name.empty() ? "" : " ") + std::string(tokens[at]);
  }
  return name;
}

// Reads "Rank 3 [Group 0] [Pid 17] on host device 3 [0x07] name".
std::optional<LogDevice> device_of(const Tokens& tokens) {
  for (std::size_t i = 0; i + 4 < tokens.size(); ++i) {
    if (bare(tokens[i]) != "Rank") continue;
    const auto rank = number_of<int>(tokens[i + 1]);
    if (!rank || *rank < 0 || *rank >= kMaxLoggedRanks) return std::nullopt;
    LogDevice device;
    device.rank = *rank;
    std::size_t at = i + 2;
    if (at + 1 < tokens.size() && tokens[at] == "Group") {
      device.group = number_of<int>(tokens[at + 1]).value_or(0);
      at += 2;
    }
    if (at + 1 < tokens.size() && tokens[at] == "Pid") at += 2;
    if (at + 2 >= tokens.size() || tokens[at] != "on" || tokens[at + 2] != "device") {
      return std::nullopt;
    }
    device.host = tokens[at + 1];
    device.name = name_behind(tokens, at + 3);
    for (std::size_t part = at + 3; part < std::min(at + 5, tokens.size()); ++part)
      device.place += (device.place.empty() ? "" : " ") + std::string(tokens[part]);
    return device;
  }
  return std::nullopt;
}

// Reads "NCCL version 2.18.3+cuda12.2", or the code of the library that nccl-tests prints.
std::string version_in(const std::string& line) {
  for (const std::string_view mark : {"NCCL version ", "nccl-library="}) {
    const std::size_t at = line.find(mark);
    if (at == std::string::npos) continue;
    const Tokens words = split_words(std::string_view(line).substr(at + mark.size()));
    if (words.empty() || words[0][0] < '0' || words[0][0] > '9') continue;
    const auto code = number_of<int>(words[0]);
    return code ? version_of_code(*code) : std::string(words[0]);
  }
  return {};
}

// Reads comments such as "# NODES: 8" above a published table.
std::optional<LogContext> comment_of(const Tokens& tokens, const std::string& line) {
  if (tokens.size() < 3 || tokens[0] != "#") return std::nullopt;
  const std::string_view key = tokens[1];
  LogContext fact;
  int number = 0;
  std::from_chars(tokens[2].data(), tokens[2].data() + tokens[2].size(), number);
  if (number < 0 || number > kMaxLoggedRanks) number = 0;
  if (key == "COLLECTIVE:") {
    fact.said_test = test_name(line.substr(line.find(':')));
  } else if (key == "NODES:") {
    fact.said_nodes = number;
  } else if (key == "GPUS:") {
    fact.said_gpus = number;
  } else if (key == "NCCL:") {
    const auto version = tokens[2].substr(0, tokens[2].find_first_not_of("0123456789."));
    if (version.find('.') != std::string_view::npos) fact.said_version = version;
  } else {
    return std::nullopt;
  }
  return fact;
}

// Returns the number after a word, "nGpus 8"; 0: none.
int count_behind(const Tokens& tokens, std::string_view word) {
  const auto at = std::ranges::find(tokens, word);
  if (tokens.end() - at < 2) return 0;
  const int count = number_of<int>(at[1]).value_or(0);
  return count > 0 && count <= kMaxLoggedRanks ? count : 0;
}

// Takes the numbers of nodes and GPUs that a command, a sentence or the test itself states.
void take_shape(const Tokens& tokens, const std::string& line, LogContext& fact) {
  if (is_nccl_line(line) || !fact.devices.empty()) return;
  const SaidShape said = shape_in(line);
  fact.said_nodes = said.nodes;
  fact.per_node = said.per_node;
  fact.nodes_guessed = said.nodes > 0;
  fact.gpus_each = said.gpus_each;
  const int threads = count_behind(tokens, "nThread"), gpus = count_behind(tokens, "nGpus");
  if (threads > 0 && gpus > 0 && gpus <= kMaxLoggedRanks / threads) fact.gpus_each = threads * gpus;
}

}  // namespace

std::optional<LogContext> fact_of(const Tokens& tokens, const std::string& line) {
  const auto has = [&](std::string_view words) { return line.find(words) != std::string::npos; };
  if (has("Collective test concluded")) return std::nullopt;
  if (auto comment = comment_of(tokens, line)) return comment;
  LogContext fact;
  if (auto device = device_of(tokens)) fact.devices.push_back(std::move(*device));
  fact.nccl_version = version_in(line);
  fact.test = find_test_program(line);
  fact.begins_list = has("Using devices");
  const bool begins_run = fact.begins_list || (has("nThread") && has("nGpus"));
  take_shape(tokens, line, fact);
  const bool something = !fact.devices.empty() || !fact.nccl_version.empty() ||
                         !fact.test.empty() || fact.said_nodes > 0 || fact.per_node > 0 ||
                         begins_run;
  return something ? std::optional(fact) : std::nullopt;
}

void RunFacts::begin_run() {
  if (!fresh_) context_ = LogContext{};
  fresh_ = true;
}

void RunFacts::take(const LogContext& fact) {
  const bool first = !fact.devices.empty() && fact.devices.front().rank == 0;
  if (first && context_.devices.size() == 1 && context_.devices.front().rank == 0) {
    context_.several_worlds = true;
  }
  if (fact.begins_list || first) context_.devices.clear();
  listing_ = listing_ || fact.begins_list;
  for (const LogDevice& device : fact.devices) context_.devices.push_back(device);
  for (const auto text : {&LogContext::test, &LogContext::nccl_version, &LogContext::said_test,
                          &LogContext::said_version}) {
    if (!(fact.*text).empty()) context_.*text = fact.*text;
  }
  if (fact.said_nodes > 0) context_.nodes_guessed = fact.nodes_guessed;
  for (const auto count : {&LogContext::said_nodes, &LogContext::said_gpus, &LogContext::per_node,
                           &LogContext::gpus_each}) {
    if (fact.*count > 0) context_.*count = fact.*count;
  }
}

void RunFacts::take_settings(const StatedSettings& stated) {
  for (const auto& [name, value] : stated.values) {
    behind_[name] = value;
    (stated.of_one_run ? context_.settings : exported_)[name] = value;
  }
}

void RunFacts::take_cut() {
  if (listing_) context_.devices_cut = true;
}

void RunFacts::begin_table(RawTable& raw) {
  behind_.clear();
  raw.context = context_;
  raw.context.settings.insert(exported_.begin(), exported_.end());
  raw.context_inherited = !fresh_;
  fresh_ = false;
}

void RunFacts::end_log(std::vector<RawTable>& tables) const {
  RawTable& last = tables.back();
  for (const auto& [name, value] : behind_) {
    if (tables.size() == 1) {
      last.context.settings.emplace(name, value);
    } else if (!last.context.settings.contains(name)) {
      last.table.notes.push_back(name + "=" + value +
                                 " comes after the last table: taken for none of them");
    }
  }
}

}  // namespace syncline::calibrate
