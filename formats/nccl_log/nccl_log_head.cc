#include "formats/nccl_log/nccl_log_head.h"

#include <cstddef>

#include "formats/nccl_log/nccl_log_parts.h"

namespace syncline::calibrate {
namespace {

// Returns true for columns that nccl-tests itself has printed after a time.
bool is_check(std::string_view word) {
  return word == "error" || word == "res" || word == "delta" || word == "max-delta" ||
         word.starts_with("i_");
}

}  // namespace

std::optional<LogHead> head_of(const Tokens& tokens) {
  std::size_t at = 0;
  while (at < tokens.size() && bare(tokens[at]) != "size" && bare(tokens[at]) != "bytes") ++at;
  if (at + 6 > tokens.size()) return std::nullopt;
  if (tokens[at + 1] != "count" && tokens[at + 1] != "N") return std::nullopt;
  if (tokens[at + 2] != "type") return std::nullopt;
  LogHead head;
  head.lead = preceding_words(tokens, at);
  head.milliseconds = bare(tokens[at]) == "bytes";
  for (at += 3; at < tokens.size(); ++at) {
    const std::string_view word = bare(tokens[at]);
    if (word == "time" || word == "cputime") {
      // Columns between the two measurements belong to the first one.
      for (std::size_t i = 0; i < head.tail.size(); ++i) {
        head.places.back().push_back(LogColumn::kOther);
      }
      head.tail.clear();
      head.places.push_back({word == "time" ? LogColumn::kTime : LogColumn::kCpuTime});
    } else if (head.places.empty()) {
      head.redop = head.redop || word == "redop" || word == "op";
      head.root = head.root || word == "root";
    } else if (!head.tail.empty()) {
      head.tail.emplace_back(word);
    } else if (word == "algbw" || word == "algoBW") {  // the second of Gaudi's hccl_demo
      head.places.back().push_back(LogColumn::kAlg);
    } else if (word == "busbw" || word == "nw_bw") {
      head.places.back().push_back(LogColumn::kBus);
    } else if (word == "wrong") {
      head.places.back().push_back(LogColumn::kWrong);
      head.counted = true;
    } else if (word == "timestamp") {
      break;
    } else if (is_check(word)) {
      head.places.back().push_back(LogColumn::kOther);
    } else {
      head.tail.emplace_back(word);  // algo, proto, nchannels of RCCL, or a user's own
    }
  }
  if (head.places.empty() || head.places.size() > 2) return std::nullopt;
  return head;
}

std::optional<LogHead> head_by_row(const Tokens& tokens, std::size_t at) {
  LogHead head;
  const auto is_value = [&](std::size_t i) {
    return i < tokens.size() &&
           (amount_of(tokens[i]) || tokens[i] == "N/A" || number_of<int>(tokens[i]));
  };
  head.redop = at < tokens.size() && !is_value(at);
  if (head.redop) ++at;
  std::size_t numbers = 0;
  while (is_value(at + numbers)) ++numbers;
  if (numbers != 8 && numbers != 9) return std::nullopt;
  head.root = numbers == 9;
  const std::vector<LogColumn> place{LogColumn::kTime, LogColumn::kAlg, LogColumn::kBus,
                                     LogColumn::kWrong};
  head.places = {place, place};
  head.counted = head.root;  // both came with 2.13, or nearly
  return head;
}

}  // namespace syncline::calibrate
