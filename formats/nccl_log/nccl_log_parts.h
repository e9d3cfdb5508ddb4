// What the two readers of nccl-tests output (text and JSON) hand over: tables as they stand, with
// the evidence for who took part. nccl_log_shape.cc turns evidence into ranks, nodes and
// collective.
#pragma once

#include <charconv>
#include <cstddef>
#include <limits>
#include <map>
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
  std::map<std::string, std::string> settings;  // of NCCL's environment
  bool several_worlds = false;                  // more than one process is its rank 0
};

// One measurement of a row as it is printed; a half is half a unit of the last digit.
struct PrintedPlace {
  double time_half = 0;  // in microseconds
  double alg = 0;        // GB/s; 0 with a half: below what the digits show
  double alg_half = 0;   // 0: no such figure
  double bus = -1;       // GB/s; negative: no such figure
  double bus_half = 0;
};

struct LogRow {
  cost::MeasuredRow row;
  int line = 0;
  int root = -1;                      // -1: none
  PrintedPlace places[2];             // out of place, in place
  std::vector<std::string> lead;      // words ahead of the size, the nearest first
  std::vector<std::string> tail;      // words behind the last column that the test prints
  std::vector<std::string> left_out;  // sentences for MeasuredTable::left_out

  // Says of one time that no fit uses it: "line 12: 1024 bytes, in place: time nan".
  void leave_out(bool out_of_place, const std::string& why);
};

// True if a result of it was wrong.
inline bool wrong_somewhere(const LogRow& one) {
  return one.row.out_of_place_wrong.value_or(0) > 0 || one.row.in_place_wrong.value_or(0) > 0;
}

struct RawTable {
  cost::MeasuredTable table;  // without rows, until parts_of has looked at them
  std::vector<LogRow> rows;
  std::vector<std::string> lead;  // the head's words ahead of "size", the nearest first
  std::vector<std::string> tail;  // and behind what the test prints
  LogContext context;
  bool context_inherited = false;  // the log said nothing new since the table before
  bool sent_away = false;          // of 2018: algbw may count only what a rank sends to others
  int root = -1;                   // of the rows; -1: none
  // busbw / algbw lies between these, by the digits printed in all rows together.
  double least_ratio = 0;
  double largest_ratio = std::numeric_limits<double>::infinity();
  bool has_ratio = false;
};

// Whether size / algbw is the time, as far as the printed digits tell; `time` in microseconds.
bool lawful(Bytes size, double time, const PrintedPlace& printed, bool sent_away);

// Takes out the times that size / algbw contradicts, and makes a table of each type, operation,
// root and value of a user's own columns.
std::vector<RawTable> parts_of(RawTable raw);

// The settings of NCCL's environment that a line states: "-x NCCL_ALGO=Tree", "NCCL_PROTO set by
// environment to LL". A command, and a line of NCCL's own, speaks of one run.
struct StatedSettings {
  std::map<std::string, std::string> values;
  bool of_one_run = false;
};
StatedSettings settings_in(std::string_view line);

// Takes the algorithm from the settings, and says what was set.
void settle_algorithm(RawTable& raw);

std::vector<RawTable> nccl_text_tables(std::string_view text);
// `problem` gets a sentence when the text is not such JSON.
std::vector<RawTable> nccl_json_tables(std::string_view text, std::string& problem);
// Lists with names for their columns: RCCL's tests with -Z, all_reduce_bench.py; empty: none of
// them.
std::vector<RawTable> nccl_list_tables(std::string_view text);

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
