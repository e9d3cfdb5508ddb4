#include "core/calibrate/nccl_log_parts.h"

#include <cmath>

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

Tokens split_words(std::string_view line) {
  Tokens tokens;
  std::size_t at = 0;
  while (at < line.size()) {
    const auto blank = [&](std::size_t i) {
      return line[i] == ' ' || line[i] == '\t' || line[i] == '\r' || line[i] == '\0';
    };
    while (at < line.size() && blank(at)) ++at;
    const std::size_t begin = at;
    while (at < line.size() && !blank(at)) ++at;
    if (at > begin) tokens.push_back(line.substr(begin, at - begin));
  }
  return tokens;
}

bool is_amount(double value) {
  // Of microseconds 11 days; what is nearer to nothing than the other is no measurement.
  constexpr double kLargest = 1e12;
  constexpr double kSmallest = 1e-30;
  return value == 0 || (value >= kSmallest && value <= kLargest);
}

std::optional<double> amount_of(std::string_view word) {
  const auto value = number_of<double>(word);
  return value && is_amount(*value) ? value : std::nullopt;
}

bool is_bad_amount(std::string_view word) {
  return number_of<double>(word).has_value() && !amount_of(word).has_value();
}

double half_unit(std::string_view word) {
  double half = 0.5;
  const std::size_t exponent = word.find_first_of("eE");
  const std::string_view mantissa = word.substr(0, exponent);
  const std::size_t point = mantissa.find('.');
  if (point != std::string_view::npos) {
    half *= std::pow(10, -static_cast<double>(mantissa.size() - point - 1));
  }
  if (exponent != std::string_view::npos) {
    // from_chars takes no plus sign.
    std::string_view power = word.substr(exponent + 1);
    if (!power.empty() && power.front() == '+') power.remove_prefix(1);
    half *= std::pow(10, number_of<int>(power).value_or(0));
  }
  return half;
}

std::string plain_line(std::string_view line) {
  std::string text;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b' && i + 1 < line.size() && line[i + 1] == '[') {
      i += 2;
      while (i < line.size() && !(line[i] >= '@' && line[i] <= '~')) ++i;
      continue;
    }
    text += line[i];
  }
  for (const std::string_view mark : {"<stdout>:", "<stderr>:"}) {
    const std::size_t at = text.find(mark);
    if (at != std::string::npos && at < 64) text.erase(0, at + mark.size());
  }
  // srun -l: "12: ".
  std::size_t digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') ++digits;
  if (digits > 0 && digits < text.size() && text[digits] == ':') text.erase(0, digits + 1);
  return text;
}

bool is_nccl_line(std::string_view line) {
  for (const std::string_view mark : {"NCCL INFO", "NCCL WARN", "NCCL TRACE", "NCCL ABORT"}) {
    if (line.find(mark) != std::string_view::npos) return true;
  }
  return false;
}

std::string_view bare(std::string_view label) {
  while (!label.empty() && label.front() == '#') label.remove_prefix(1);
  return label;
}

std::optional<LogHead> head_of(const Tokens& tokens) {
  std::size_t at = 0;
  while (at < tokens.size() && bare(tokens[at]) != "size" && bare(tokens[at]) != "bytes") ++at;
  if (at + 6 > tokens.size()) return std::nullopt;
  if (tokens[at + 1] != "count" && tokens[at + 1] != "N") return std::nullopt;
  if (tokens[at + 2] != "type") return std::nullopt;
  LogHead head;
  head.milliseconds = bare(tokens[at]) == "bytes";
  for (at += 3; at < tokens.size(); ++at) {
    const std::string_view word = bare(tokens[at]);
    if (word == "time" || word == "cputime") {
      head.places.push_back({word == "time" ? LogColumn::kTime : LogColumn::kCpuTime});
    } else if (head.places.empty()) {
      head.redop = head.redop || word == "redop" || word == "op";
      head.root = head.root || word == "root";
    } else if (word == "algbw") {
      head.places.back().push_back(LogColumn::kAlg);
    } else if (word == "busbw") {
      head.places.back().push_back(LogColumn::kBus);
    } else if (word == "wrong") {
      head.places.back().push_back(LogColumn::kWrong);
      head.counted = true;
    } else if (word == "timestamp") {
      break;
    } else {
      head.places.back().push_back(LogColumn::kOther);  // error, res, delta, i_min, ...
    }
  }
  if (head.places.empty() || head.places.size() > 2) return std::nullopt;
  return head;
}

std::optional<LogHead> head_by_row(const Tokens& tokens, std::size_t at) {
  LogHead head;
  if (at < tokens.size() && !amount_of(tokens[at]) && tokens[at] != "N/A" &&
      !number_of<int>(tokens[at])) {
    head.redop = true;
    ++at;
  }
  std::size_t numbers = 0;
  while (at + numbers < tokens.size()) {
    const std::string_view word = tokens[at + numbers];
    if (!amount_of(word) && word != "N/A" && !number_of<int>(word)) break;
    ++numbers;
  }
  if (numbers != 8 && numbers != 9) return std::nullopt;
  head.root = numbers == 9;
  const std::vector<LogColumn> place{LogColumn::kTime, LogColumn::kAlg, LogColumn::kBus,
                                     LogColumn::kWrong};
  head.places = {place, place};
  head.counted = head.root;  // both came with 2.13, or nearly
  return head;
}

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
