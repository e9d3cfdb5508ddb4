// NCCL's environment, as a log states it: in the command, exported, or in NCCL's own lines.
#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <vector>

#include "formats/nccl_log/nccl_log_parts.h"

namespace syncline::calibrate {
namespace {

bool is_name_letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

// Returns the value after a name: "=Tree", " set by environment to Tree.", or " Tree" after a
// launcher's word (-genv, --env).
std::string value_behind(std::string_view rest, bool by_launcher, bool of_nccl) {
  constexpr std::string_view kSaid = " set by environment to ";
  if (rest.starts_with("=")) {
    rest.remove_prefix(1);
  } else if (rest.starts_with(kSaid)) {
    rest.remove_prefix(kSaid.size());
  } else if ((!of_nccl && rest.starts_with(": ")) || (by_launcher && rest.starts_with(" "))) {
    rest.remove_prefix(rest.find_first_not_of(": "));
  } else {
    return {};
  }
  const char quote = rest.empty() ? ' ' : rest.front();
  if (quote == '"' || quote == '\'') {
    rest.remove_prefix(1);
    return std::string(rest.substr(0, rest.find(quote)));
  }
  std::string value(rest.substr(0, rest.find_first_of(" \t\r\"'`\\)")));
  while (!value.empty() && std::string_view(".,;").find(value.back()) != std::string_view::npos) {
    value.pop_back();
  }
  return value;
}

std::string lower(std::string_view text) {
  std::string result;
  for (const char c : text)
    result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

std::vector<std::string> split_at(const std::string& text, char mark) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(mark, begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// Returns NCCL_ALGO's value for one collective: "tree", "ring,tree" or "^tree"; empty: none. Since
// 2.24 it may differ: "ring;allreduce:tree".
std::string algorithm_for(const std::string& value, const std::string& test) {
  std::string found;
  for (const std::string& entry : split_at(lower(value), ';')) {
    const std::size_t colon = entry.find(':');
    if (colon == std::string::npos) {
      if (found.empty()) found = entry;
    } else if (test_name(entry.substr(0, colon)) == test) {
      found = entry.substr(colon + 1);
    }
  }
  return found;
}

// Returns true for settings of the output, which change no time.
bool is_of_output(std::string_view name) {
  return name.starts_with("NCCL_DEBUG") || name == "NCCL_VERSION" || name.starts_with("NCCL_TESTS");
}

}  // namespace

StatedSettings find_settings(std::string_view line) {
  StatedSettings stated;
  const auto has = [&](std::string_view words) { return line.find(words) != line.npos; };
  stated.of_one_run =
      has("NCCL INFO") || has("_perf") || has("mpirun") || has("mpiexec") || has("srun");
  for (const std::string_view start : {"NCCL_", "RCCL_"}) {
    for (std::size_t at = line.find(start); at != line.npos; at = line.find(start, at + 1)) {
      if (at > 0 && is_name_letter(line[at - 1])) continue;
      std::size_t end = at;
      while (end < line.size() && is_name_letter(line[end])) ++end;
      const std::string_view before = line.substr(0, at);
      const bool by_launcher = before.ends_with("env ");
      std::string value = value_behind(line.substr(end), by_launcher, has(" NCCL "));
      const std::string name(line.substr(at, end - at));
      // "$ALGO" has no known value.
      if (!value.empty() && value.front() != '$' && !is_of_output(name))
        stated.values[name] = std::move(value);
    }
  }
  return stated;
}

void settle_algorithm(RawTable& raw) {
  cost::MeasuredTable& table = raw.table;
  table.settings = raw.context.settings;
  std::string others;
  for (const auto& [name, value] : table.settings) {
    if (name != "NCCL_ALGO") others += (others.empty() ? "" : ", ") + name + "=" + value;
  }
  if (!others.empty()) {
    table.notes.push_back("it ran with " + others +
                          ": its times are those of jobs that set the same");
  }
  const auto set = table.settings.find("NCCL_ALGO");
  if (set == table.settings.end()) return;
  const std::string algorithm = algorithm_for(set->second, table.test);
  const std::string setting = "it ran with NCCL_ALGO=" + set->second;
  if (algorithm.empty()) {
    table.notes.push_back(setting + ", which says nothing of " + table.test);
  } else if (algorithm.find_first_of(",^") != std::string::npos) {
    table.notes.push_back(setting + ", which leaves NCCL a choice: read as NCCL's own");
  } else if (algorithm == "ring") {
    table.forced = cost::ForcedAlgorithm::kRing;
    table.notes.push_back(setting + ": its times are those of a forced ring");
  } else if (algorithm == "tree" && table.kind == collective::CollectiveKind::kAllReduce) {
    table.forced = cost::ForcedAlgorithm::kTree;
    table.notes.push_back(setting + ": its times are those of a forced tree");
  } else if (algorithm == "tree") {
    table.notes.push_back(setting +
                          ", which NCCL has for all_reduce only: read as NCCL's own choice");
  } else {
    table.other_algorithm = set->second;
  }
}

}  // namespace syncline::calibrate
