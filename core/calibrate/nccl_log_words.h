// A line of a printed log: its words and numbers, what a table's head means, what else it says.
#pragma once

#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/calibrate/nccl_log_parts.h"

namespace syncline::calibrate {

using Tokens = std::vector<std::string_view>;

// The words of a line, between blanks.
Tokens split_words(std::string_view line);

// The whole word as a number, or nothing.
template <typename Number>
std::optional<Number> number_of(std::string_view word) {
  Number value{};
  const char* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, value);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

// Whether a time in microseconds or a bandwidth in GB/s can have been measured: 0, or from 1e-30 to
// 1e12.
bool is_amount(double value);
std::optional<double> amount_of(std::string_view word);

// What stands in place of an amount where a measurement went wrong: "nan", "-inf", "-3.5".
bool is_bad_amount(std::string_view word);

// Half a unit of the last digit of a printed number: 0.005 for "12.34".
double half_unit(std::string_view word);

// The line without colours and without what launchers put ahead of it: "[1,0]<stdout>:", "12: ".
std::string plain_line(std::string_view line);

// Whether NCCL itself wrote into the line.
bool is_nccl_line(std::string_view line);

// A label without its '#'.
std::string_view bare(std::string_view label);

// What the columns of a printed table mean.
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

// What a line says about the run around a table: devices, program, version, comments.
struct LogFact {
  bool begins_run = false;   // the line with which a test begins
  bool begins_list = false;  // "Using devices"
  std::optional<LogDevice> device;
  std::string program;  // "all_reduce"
  std::string version;
  std::string said_test;  // of comments above a published table, as in the four below
  int said_nodes = 0;
  int said_gpus = 0;
  std::string said_version;
};

// The line's fact, or nothing.
std::optional<LogFact> fact_of(const Tokens& tokens, const std::string& line);

}  // namespace syncline::calibrate
