#include "core/calibrate/nccl_log_facts.h"

namespace syncline::calibrate {
namespace {

constexpr int kMostLoggedRanks = 1 << 20;

// "[0x07] NVIDIA H100 80GB HBM3" behind "device", its number and its bus.
std::string name_behind(const Tokens& tokens, std::size_t at) {
  // The bus may stand apart from its bracket: "device  0 [0x07]", "device 0 [ 0x07]".
  while (at < tokens.size() && tokens[at].find(']') == std::string_view::npos) ++at;
  std::string name;
  for (++at; at < tokens.size(); ++at) {
    name += (name.empty() ? "" : " ") + std::string(tokens[at]);
  }
  return name;
}

// "Rank 3 [Group 0] [Pid 17] on host device 3 [0x07] name".
std::optional<LogDevice> device_of(const Tokens& tokens) {
  for (std::size_t i = 0; i + 4 < tokens.size(); ++i) {
    if (bare(tokens[i]) != "Rank") continue;
    const auto rank = number_of<int>(tokens[i + 1]);
    if (!rank || *rank < 0 || *rank >= kMostLoggedRanks) return std::nullopt;
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
    return device;
  }
  return std::nullopt;
}

// "NCCL version 2.18.3+cuda12.2", or the code of the library that nccl-tests prints.
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

// "# NODES: 8" and its like, above a published table.
std::optional<LogFact> comment_of(const Tokens& tokens, const std::string& line) {
  if (tokens.size() < 3 || tokens[0] != "#") return std::nullopt;
  const std::string_view key = tokens[1];
  LogFact fact;
  int number = 0;
  std::from_chars(tokens[2].data(), tokens[2].data() + tokens[2].size(), number);
  if (number < 0 || number > kMostLoggedRanks) number = 0;
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

}  // namespace

std::optional<LogFact> fact_of(const Tokens& tokens, const std::string& line) {
  const auto has = [&](std::string_view words) { return line.find(words) != std::string::npos; };
  if (has("Collective test concluded")) return std::nullopt;
  if (auto comment = comment_of(tokens, line)) return comment;
  LogFact fact;
  fact.device = device_of(tokens);
  fact.version = version_in(line);
  fact.program = test_program_in(line);
  fact.begins_list = has("Using devices");
  fact.begins_run = fact.begins_list || (has("nThread") && has("nGpus"));
  const bool something =
      fact.device || !fact.version.empty() || !fact.program.empty() || fact.begins_run;
  return something ? std::optional(fact) : std::nullopt;
}

}  // namespace syncline::calibrate
