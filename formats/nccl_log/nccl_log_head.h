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
  // Words before the size, the nearest first, and after the columns that the test prints.
  std::vector<std::string> lead;
  std::vector<std::string> tail;
};

// Reads a line as the head of a table; nullopt: it is not one.
std::optional<LogHead> head_of(const Tokens& tokens);

// Finds the columns if the head is missing (an abridged log), by the shape of one whole row; its
// words after the type begin at `at`. Both measurements have four columns; a word after the type is
// the operation, and an odd number of numbers means a root.
std::optional<LogHead> head_by_row(const Tokens& tokens, std::size_t at);

}  // namespace syncline::calibrate
