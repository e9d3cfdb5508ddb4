// The head of a printed table: its columns.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "formats/nccl_log/nccl_log_words.h"

namespace syncline::calibrate {

enum class LogColumn { kTime, kCpuTime, kAlg, kBus, kWrong, kOther };

struct LogHead {
  bool redop = false;
  bool root = false;
  std::vector<std::vector<LogColumn>> places;  // out of place, then in place
  bool counted = false;                        // the checks are "#wrong", a number of elements
  bool milliseconds = false;                   // the head of 2018: "bytes N type op"; no unit line
  // Words ahead of the size, the nearest first, and behind what the test prints.
  std::vector<std::string> lead;
  std::vector<std::string> tail;
};

// Reads a line as the head of a table; nothing: it is none.
std::optional<LogHead> head_of(const Tokens& tokens);

// Finds the columns where the head is missing (an abridged log): by the shape of one whole row,
// whose words behind the type begin at `at`. Both measurements have four columns; a word behind the
// type is the operation, an odd number of numbers has a root.
std::optional<LogHead> head_by_row(const Tokens& tokens, std::size_t at);

}  // namespace syncline::calibrate
