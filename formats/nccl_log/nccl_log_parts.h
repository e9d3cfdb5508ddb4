// Results of the readers of nccl-tests output (text and JSON): tables as printed, with the evidence
// for the devices that took part. nccl_log_shape.cc derives ranks, nodes and collective from it.
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
  std::string name;   // of the GPU; empty if the line ends before it
  std::string place;  // its number and bus, "0 [0000:02:00]"
};

// Facts stated before a table, or by one line.
struct LogContext {
  std::string test;  // named by the test itself
  std::vector<LogDevice> devices;
  bool begins_list = false;  // of devices; earlier ones belong to another run
  int ranks_per_device = 1;  // JSON lists one device per process
  bool devices_cut = false;  // the list says that it is cut off
  std::string nccl_version;
  std::string said_test;  // from "# COLLECTIVE: ..." and its like
  int said_nodes = 0;
  int said_gpus = 0;
  int per_node = 0;            // processes of a node by the command
  int gpus_each = 0;           // of a process: nThread x nGpus
  bool nodes_guessed = false;  // by a command or a sentence, not by a published table's comment
  std::string said_version;
  std::map<std::string, std::string> settings;  // of NCCL's environment
  bool several_worlds = false;                  // several processes are rank 0 of NCCL's world
};

// One printed measurement of a row; a half is half a unit of the last digit.
struct PrintedPlace {
  double time_half = 0;  // in microseconds
  double alg = 0;        // GB/s; 0 with a half: too small for the printed digits
  double alg_half = 0;   // 0: no such figure
  double bus = -1;       // GB/s; negative: no such figure
  double bus_half = 0;
};

struct LogRow {
  cost::MeasuredRow row;
  int line = 0;
  int root = -1;                      // -1: none
  PrintedPlace places[2];             // out of place, in place
  std::vector<std::string> lead;      // words before the size, the nearest first
  std::vector<std::string> tail;      // words after the last column that the test prints
  std::vector<std::string> left_out;  // sentences for MeasuredTable::left_out

  // Adds a sentence that no fit uses one of the times: "line 12: 1024 bytes, in place: time nan".
  void leave_out(bool out_of_place, const std::string& why);
};

// Returns true if any result of the row was wrong.
inline bool wrong_somewhere(const LogRow& one) {
  return one.row.out_of_place_wrong.value_or(0) > 0 || one.row.in_place_wrong.value_or(0) > 0;
}

struct RawTable {
  cost::MeasuredTable table;  // without rows until parts_of has checked them
  std::vector<LogRow> rows;
  std::vector<std::string> lead;  // the head's words before "size", the nearest first
  std::vector<std::string> tail;  // its words after the columns that the test prints
  LogContext context;
  bool context_inherited = false;  // the log states no new fact after the previous table
  bool sent_away = false;    // of 2018: algbw may count only bytes that a rank sends to others
  bool busbw_alone = false;  // of 2019: so it may, if busbw is the same
  int root = -1;             // of the rows; -1: none
  // Range of busbw / algbw that the digits printed in all rows together allow.
  double least_ratio = 0;
  double largest_ratio = std::numeric_limits<double>::infinity();
  bool has_ratio = false;
};

// Returns true if size / algbw equals the time within the printed digits; `time` in microseconds.
bool lawful(Bytes size, double time, const PrintedPlace& printed, bool sent_away);

// Removes the times that size / algbw contradicts. Makes a table for each type, operation, root and
// value of a user's own columns.
std::vector<RawTable> parts_of(RawTable raw);

// Settings of NCCL's environment in a line: "-x NCCL_ALGO=Tree", "NCCL_PROTO set by environment to
// LL".
struct StatedSettings {
  std::map<std::string, std::string> values;
  bool of_one_run = false;  // a command, or a line of NCCL; else all later runs have them (export)
};
StatedSettings find_settings(std::string_view line);

// Sets the algorithm by the settings, and adds a sentence about them.
void settle_algorithm(RawTable& raw);

std::vector<RawTable> nccl_text_tables(std::string_view text);
// Reads JSON. Sets `problem` to a sentence if the text is not such JSON.
std::vector<RawTable> nccl_json_tables(std::string_view text, std::string& problem);
// Reads lists with named columns: RCCL's tests with -Z, all_reduce_bench.py; empty: the text is
// none of them.
std::vector<RawTable> nccl_list_tables(std::string_view text);

// Sets ranks, nodes, collective and version by the evidence.
void settle_shape(RawTable& raw, const std::string& file_name);

// Reads tables with named columns that people make of such tests: CSV, Markdown, columns of blanks.
std::vector<RawTable> nccl_column_tables(std::string_view text);
// Returns the line by which a test ended with an error; empty: none.
std::string failure_in(std::string_view text);

// Returns "all_reduce" for "all_reduce_perf", "AllReduce", ...; empty if it is none of the tests.
std::string test_name(std::string_view word);
// Returns the test that a sentence names as such, "AllReduce (PASS)"; empty: none, or only a word
// of other meanings such as "reduce".
std::string test_in_sentence(std::string_view line);
// Returns the first test named in `line` as a program ("all_reduce_perf"), or empty.
std::string find_test_program(std::string_view line);
// Returns NCCL's version code as text: 22902 -> "2.29.2"; 2708 -> "2.7.8".
std::string version_of_code(int code);
// Returns the bytes of an element of that type, or 0 for a word that is not a type.
int nccl_type_size(std::string_view word);

// Returns the whole word as a number, or nullopt.
template <typename Number>
std::optional<Number> number_of(std::string_view word) {
  Number value{};
  const char* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, value);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

// Returns true if a time in microseconds or a bandwidth in GB/s can be a measured one: 0, or from
// 1e-30 to 1e12.
bool is_amount(double value);
std::optional<double> amount_of(std::string_view word);

}  // namespace syncline::calibrate
