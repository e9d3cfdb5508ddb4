// What the columns of a printed table mean.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "core/calibrate/nccl_log_words.h"

namespace syncline::calibrate {

enum class LogColumn { kTime, kCpuTime, kAlg, kBus, kWrong, kOther };

struct LogHead {
  bool redop = false;
  bool root = false;
  std::vector<std::vector<LogColumn>> places;  // out of place, then in place
  bool counted = false;                        // the checks are "#wrong", a number of elements
  bool milliseconds = false;                   // the head of 2018: "bytes N type op"; no unit line
  std::size_t values() const {
    std::size_t sum = 0;
    for (const auto& place : places) sum += place.size();
    return sum;
  }
};

// The head of a table, or nothing.
std::optional<LogHead> head_of(const Tokens& tokens);

// Where the head is missing (an abridged log): by the shape of one whole row, whose words behind
// the type begin at `at`. Both measurements have four columns; a word behind the type is the
// operation, an odd number of numbers has a root.
std::optional<LogHead> head_by_row(const Tokens& tokens, std::size_t at);

}  // namespace syncline::calibrate
