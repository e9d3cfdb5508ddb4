// What the two readers of nccl-tests output (text and JSON) hand over: tables as they stand, with
// the evidence for who took part. nccl_log_shape.cc turns evidence into ranks, nodes and
// collective.
#pragma once

#include <charconv>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/cost/measured_table.h"

namespace syncline::calibrate {

// One line of the list of devices.
struct LogDevice {
  int rank = 0;
  int group = 0;  // communicators of a split world; the table is group 0's
  std::string host;
  std::string name;  // of the GPU, "" where the line ends before it
};

// What was said ahead of a table.
struct LogContext {
  std::string test;  // named by the test itself
  std::vector<LogDevice> devices;
  int ranks_per_device = 1;  // JSON lists one device a process
  bool devices_cut = false;  // the list says that it is cut off
  std::string nccl_version;
  std::string said_test;  // from "# COLLECTIVE: ..." and its like
  int said_nodes = 0;
  int said_gpus = 0;
  std::string said_version;
};

struct RawTable {
  cost::MeasuredTable table;
  LogContext context;
  bool context_inherited = false;  // the log said nothing new since the table before
  int root = -1;                   // of the last row; -1: none
  // busbw / algbw lies between these, by the digits printed in all rows together.
  double least_ratio = 0;
  double largest_ratio = std::numeric_limits<double>::infinity();
  bool has_ratio = false;

  // Says of one time that no fit uses it: "line 12: 1024 bytes, in place: time nan".
  void leave_out(int line, Bytes size, bool out_of_place, const std::string& why);

  // Narrows the two by one row's figures, each printed to within `half`.
  void narrow(double alg, double bus, double half);
};

std::vector<RawTable> nccl_text_tables(std::string_view text);
// `problem` gets a sentence when the text is not such JSON.
std::vector<RawTable> nccl_json_tables(std::string_view text, std::string& problem);

// Ranks, nodes, collective and version, from the evidence.
void settle_shape(RawTable& raw, const std::string& file_name);

// "all_reduce" from "all_reduce_perf", "AllReduce", "reducescatter", ...; empty when it is none of
// the tests.
std::string test_name(std::string_view word);
// The first test named anywhere in `line` as a program ("all_reduce_perf"), or empty.
std::string test_program_in(std::string_view line);
// NCCL's version code as text: 22902 -> "2.29.2"; 2708 -> "2.7.8".
std::string version_of_code(int code);
// Bytes of an element of that type, or 0 for a word that is not a type.
int nccl_type_size(std::string_view word);

// A line of a printed log: its words and numbers, what a table's head means, what else it says.

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
