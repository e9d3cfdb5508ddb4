#include "core/calibrate/nccl_log_head.h"

namespace syncline::calibrate {

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

}  // namespace syncline::calibrate
