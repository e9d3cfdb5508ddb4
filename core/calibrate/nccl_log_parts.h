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

// What was said ahead of a table, or what one line of it says.
struct LogContext {
  std::string test;  // named by the test itself
  std::vector<LogDevice> devices;
  bool begins_list = false;  // of devices: those before are another run's
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

}  // namespace syncline::calibrate
