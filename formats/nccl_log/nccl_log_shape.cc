// Determines the ranks and the collective of a table.
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "formats/nccl_log/nccl_log_parts.h"

namespace syncline::calibrate {
namespace {

bool one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Facts in the columns, independent of names and comments.
struct Columns {
  std::string redop;                // of the rows; empty: no such column
  int multiple = 0;                 // size / (count x element), if equal in all rows
  bool in_place_unchecked = false;  // only the out-of-place results were checked
  bool unchecked = false;           // neither were
  bool above_one = false;           // busbw is more than algbw: an all-reduce's alone can be
};

Columns columns_of(const RawTable& raw) {
  const cost::MeasuredTable& table = raw.table;
  Columns columns;
  columns.above_one = raw.has_ratio && raw.least_ratio > 1;
  bool out_checked = false;
  bool in_checked = false;
  bool in_timed = false;
  bool first = true;
  for (const cost::MeasuredRow& row : table.rows) {
    columns.redop = row.redop;
    out_checked = out_checked || row.out_of_place_wrong.has_value();
    in_checked = in_checked || row.in_place_wrong.has_value();
    in_timed = in_timed || row.in_place.has_value();
    const int size = nccl_type_size(row.type);
    if (row.count <= 0 || row.size <= 0 || size == 0) continue;
    const Bytes base = row.count <= row.size / size ? row.count * size : 0;
    const Bytes multiple = base > 0 && row.size % base == 0 ? row.size / base : 0;
    const int found = multiple < (1 << 20) ? static_cast<int>(multiple) : 0;
    columns.multiple = first || columns.multiple == found ? found : 0;
    first = false;
  }
  columns.in_place_unchecked = out_checked && !in_checked && in_timed;
  columns.unchecked = !out_checked && !in_checked;
  return columns;
}

// Returns true if a table of that test can have these columns.
bool agrees(std::string_view test, const Columns& columns) {
  const bool reduces = one_of(test, {"all_reduce", "reduce_scatter", "reduce"});
  const bool moves = one_of(test, {"all_gather", "broadcast", "alltoall", "gather", "scatter"});
  if (reduces && columns.redop == "none") return false;
  if (moves && !columns.redop.empty() && columns.redop != "none") return false;
  if (columns.above_one && test != "all_reduce") return false;
  const bool whole = one_of(test, {"all_reduce", "reduce", "broadcast", "sendrecv"});
  return !(whole && columns.multiple > 1);
}

// Returns the collective by only its columns; empty if several fit.
std::string test_by_columns(const RawTable& raw, const Columns& columns) {
  if (columns.above_one) return "all_reduce";
  const bool rooted = raw.root >= 0;
  const bool ratio_one = raw.has_ratio && raw.least_ratio <= 1 && raw.largest_ratio >= 1;
  // From 2018 to 2022 only broadcast had a root and no operation.
  if (columns.redop.empty()) return rooted && columns.multiple <= 1 ? "broadcast" : "";
  if (columns.multiple > 1) {
    if (columns.redop != "none") return "reduce_scatter";
    // Checks tell alltoall, which has no results in place, from all_gather.
    if (rooted || columns.unchecked) return {};
    return columns.in_place_unchecked ? "alltoall" : "all_gather";
  }
  if (columns.redop == "none") return rooted && ratio_one ? "broadcast" : "";
  if (rooted) return ratio_one ? "reduce" : "";
  if (columns.in_place_unchecked) return ratio_one ? "sendrecv" : "";
  return raw.has_ratio ? "all_reduce" : "";
}

struct Span {
  int least = 0;
  int largest = 0;  // 0: no limit
  bool known = false;
  bool holds(int ranks) const {
    return !known || (ranks >= least && (largest == 0 || ranks <= largest));
  }
  int only() const { return known && least == largest ? least : 0; }
};

// Returns the ranks that busbw / algbw = factor x (n - 1) / n allows.
Span ranks_by_ratio(const RawTable& raw, std::string_view test) {
  const double factor =
      test == "all_reduce"                                                              ? 2
      : one_of(test, {"all_gather", "reduce_scatter", "alltoall", "gather", "scatter"}) ? 1
                                                                                        : 0;
  Span span;
  if (factor == 0 || !raw.has_ratio || raw.least_ratio > raw.largest_ratio) return span;
  constexpr double kMaxRanks = 1 << 20;
  const auto ranks = [&](double ratio) { return 1 / (1 - ratio / factor); };
  if (raw.least_ratio >= factor) return span;
  const double least = std::ceil(ranks(raw.least_ratio) - 1e-9);
  if (least > kMaxRanks) return span;
  span.known = true;
  span.least = std::max(1, static_cast<int>(least));
  if (raw.largest_ratio < factor) {
    const double largest = std::floor(ranks(raw.largest_ratio) + 1e-9);
    if (largest < least) return {};
    span.largest = largest > kMaxRanks ? 0 : static_cast<int>(largest);
  }
  return span;
}

void settle_test(RawTable& raw, const Columns& columns, const std::string& file_name) {
  cost::MeasuredTable& table = raw.table;
  const std::string by_columns = test_by_columns(raw, columns);
  const auto take = [&](const std::string& name, const std::string& where) {
    if (name.empty() || !table.test.empty()) return;
    if (agrees(name, columns)) {
      table.test = name;
      return;
    }
    table.notes.push_back(where + " says " + name + ", which the columns contradict");
  };
  // A name inherited from the previous table is weaker evidence than this table's own columns.
  if (!raw.context_inherited) take(raw.context.test, "the log");
  take(raw.context.said_test, "a comment");
  if (table.test.empty() && !by_columns.empty()) {
    table.test = by_columns;
    table.notes.push_back("collective recognised by its columns");
  }
  if (table.test.empty() && raw.context_inherited) take(raw.context.test, "the table before");
  if (table.test.empty()) {
    take(test_name(file_name), "the file's name");
    if (!table.test.empty()) table.notes.push_back("collective taken from the file's name");
  }
  if (table.test.empty()) table.notes.push_back("collective not recognised");
  table.kind = cost::kind_named(table.test);
}

// Facts in the list of devices.
struct Listed {
  int ranks = 0;
  std::map<std::string, int> hosts;  // ranks of each
  bool whole = false;                // no device is missing
  bool split = false;                // one communicator of several
  std::string shared;                // GPU of several ranks, "0 [0000:02:00] of lab"
};

Listed listed_devices(const LogContext& context) {
  Listed listed;
  const auto& devices = context.devices;
  if (devices.empty()) return listed;
  const int group = devices.front().group;
  int counted = 0;
  int last = -1;
  std::set<std::string> places;
  for (const LogDevice& device : devices) {
    last = std::max(last, device.rank);
    listed.split = listed.split || device.group != group;
    if (device.group != group) continue;
    // Buses of virtual machines may be unknown: "[0x00]".
    const std::string place = device.place + " of " + device.host;
    const bool known =
        device.place.find_first_of("123456789abcdef", device.place.find('[')) != std::string::npos;
    if (known && !places.insert(place).second) listed.shared = place;
    listed.hosts[device.host] += context.ranks_per_device;
    counted += context.ranks_per_device;
  }
  // If each device is a rank of one world, the highest number gives the count.
  const bool numbered = !listed.split && context.ranks_per_device <= 1;
  listed.ranks = numbered ? last + 1 : counted;
  listed.whole = !context.devices_cut && (!numbered || last + 1 == counted);
  return listed;
}

// Takes ranks and hosts from the list. Returns true if it shows the nodes too.
bool take_devices(const Listed& listed, const Span& span, cost::MeasuredTable& table) {
  if (!span.holds(listed.ranks)) {
    table.notes.push_back("the list of devices shows " + std::to_string(listed.ranks) +
                          " ranks, which busbw / algbw contradicts");
    return false;
  }
  table.ranks = listed.ranks;
  if (!listed.whole) {
    table.notes.push_back("the list of devices is incomplete: it does not show the nodes");
    return false;
  }
  if (!listed.shared.empty()) {
    table.notes.push_back("ranks share GPU " + listed.shared +
                          ": these are no times of a GPU for each");
  }
  table.nodes = static_cast<int>(listed.hosts.size());
  const int each = listed.hosts.begin()->second;
  const bool even = std::all_of(listed.hosts.begin(), listed.hosts.end(),
                                [&](const auto& host) { return host.second == each; });
  if (even) table.gpus_per_node = each;
  if (!even) table.notes.push_back("hosts with different numbers of ranks");
  return true;
}

void take_comment(int said_gpus, const Span& span, cost::MeasuredTable& table) {
  if (said_gpus <= 0) return;
  if (span.holds(said_gpus)) {
    table.ranks = said_gpus;
    return;
  }
  table.notes.push_back("a comment says " + std::to_string(said_gpus) +
                        " GPUs, which the columns contradict");
}

void take_columns(const Span& span, cost::MeasuredTable& table) {
  table.ranks = span.only();
  if (table.ranks > 0) {
    table.notes.push_back("ranks recovered from the columns");
  } else if (span.known) {
    table.least_ranks = span.least;
    table.most_ranks = span.largest;
    table.notes.push_back("busbw / algbw leaves " + std::to_string(span.least) + " to " +
                          (span.largest == 0 ? "any number of" : std::to_string(span.largest)) +
                          " ranks open");
  }
}

// Sets the ranks by the best evidence: the list of devices, a comment, the columns. The columns can
// exclude the others' numbers.
void settle_ranks(RawTable& raw, const Columns& columns) {
  cost::MeasuredTable& table = raw.table;
  Span span = ranks_by_ratio(raw, table.test);
  if (one_of(table.test, {"all_gather", "reduce_scatter"}) && columns.multiple > 0) {
    span = {columns.multiple, columns.multiple, true};
  }
  constexpr double kRounding = 1.03;
  if (raw.has_ratio && raw.least_ratio > kRounding * raw.largest_ratio) {
    table.mixed = true;
    table.notes.push_back(
        "busbw / algbw differs from row to row: its rows are of different numbers of ranks");
  }
  const Listed listed = listed_devices(raw.context);
  if (raw.context.several_worlds) {
    table.notes.push_back(
        "more than one process is rank 0, so each ran by itself: nccl-tests was built without "
        "MPI=1");
  }
  if (listed.split) table.notes.push_back("the world is split: this is its first communicator");
  if (!raw.context.devices.empty() && take_devices(listed, span, table)) return;
  if (table.ranks == 0) take_comment(raw.context.said_gpus, span, table);
  if (table.ranks == 0) take_columns(span, table);

  // Without a complete list the nodes are those that a comment or the command says, if they divide
  // the ranks. A process has GPUs of one node.
  const LogContext& said = raw.context;
  const int each = said.per_node * std::max(1, said.gpus_each);
  if (said.said_nodes > 0 && (table.ranks == 0 || table.ranks % said.said_nodes == 0)) {
    table.nodes = said.said_nodes;
  } else if (each > 0 && table.ranks > 0 && table.ranks % each == 0) {
    table.nodes = table.ranks / each;
  } else if (table.ranks == 1 || (table.ranks > 0 && table.ranks == said.gpus_each)) {
    table.nodes = 1;
  }
  if (table.nodes > 0 && (said.nodes_guessed || said.per_node > 0)) {
    table.notes.push_back("on " + std::to_string(table.nodes) +
                          (table.nodes == 1 ? " node" : " nodes") +
                          " by the command or a line before it");
  }
  if (table.nodes > 0 && table.ranks > 0) table.gpus_per_node = table.ranks / table.nodes;
}

// Longer names come before names that are a part of them.
constexpr std::string_view kTests[] = {"reduce_scatter", "all_reduce", "all_gather", "alltoallv",
                                       "alltoall",       "broadcast",  "sendrecv",   "hypercube",
                                       "scatter",        "gather",     "reduce"};

std::string squeeze(std::string_view word) {
  std::string result;
  for (const char c : word) {
    if (c == '_' || c == '-' || c == ' ') continue;
    result += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return result;
}

}  // namespace

void settle_shape(RawTable& raw, const std::string& file_name) {
  const Columns columns = columns_of(raw);
  settle_test(raw, columns, file_name);
  settle_algorithm(raw);
  settle_ranks(raw, columns);
  const LogContext& context = raw.context;
  raw.table.nccl_version =
      !context.nccl_version.empty() ? context.nccl_version : context.said_version;
}

std::string test_name(std::string_view word) {
  const std::string squeezed = squeeze(word);
  for (const std::string_view test : kTests) {
    if (squeezed.find(squeeze(test)) != std::string::npos) return std::string(test);
  }
  return {};
}

std::string test_in_sentence(std::string_view line) {
  const std::string program = find_test_program(line);
  if (!program.empty()) return program;
  const std::string squeezed = squeeze(line);
  std::string found;
  for (const std::string_view test : kTests) {
    if (one_of(test, {"reduce", "gather", "scatter", "broadcast"})) continue;
    if (squeezed.find(squeeze(test)) == std::string::npos) continue;
    if (!found.empty() && !found.starts_with(test)) return {};  // several
    if (found.empty()) found = test;
  }
  return found;
}

std::string find_test_program(std::string_view line) {
  const std::size_t end = line.find("_perf");
  if (end == std::string_view::npos) return {};
  std::size_t begin = end;
  while (begin > 0 &&
         (line[begin - 1] == '_' || (line[begin - 1] >= 'a' && line[begin - 1] <= 'z'))) {
    --begin;
  }
  const std::string_view name = line.substr(begin, end - begin);
  return std::ranges::count(kTests, name) > 0 ? std::string(name) : std::string();
}

std::string version_of_code(int code) {
  if (code <= 0) return {};
  // Up to 2.8 a version was major x 1000 + minor x 100 + patch.
  const int major = code < 10000 ? code / 1000 : code / 10000;
  const int minor = (code < 10000 ? code % 1000 : code % 10000) / 100;
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(code % 100);
}

int nccl_type_size(std::string_view word) {
  static constexpr std::pair<std::string_view, int> kTypes[] = {
      {"int8", 1},     {"uint8", 1},    {"char", 1},    {"f8e4m3", 1},  {"f8e5m2", 1},
      {"fp8_e4m3", 1}, {"fp8_e5m2", 1}, {"fp8", 1},     {"fp16", 2},    {"float16", 2},
      {"bf16", 2},     {"fp32", 4},     {"float32", 4}, {"float64", 8}, {"half", 2},
      {"bfloat16", 2}, {"int32", 4},    {"uint32", 4},  {"int", 4},     {"float", 4},
      {"int64", 8},    {"uint64", 8},   {"double", 8},
  };
  for (const auto& [name, size] : kTypes) {
    if (name == word) return size;
  }
  return 0;
}

bool is_amount(double value) {
  // kLargest is 11 days in microseconds; a number nearer to 0 than kSmallest is no measurement.
  constexpr double kLargest = 1e12;
  constexpr double kSmallest = 1e-30;
  return value == 0 || (value >= kSmallest && value <= kLargest);
}

std::optional<double> amount_of(std::string_view word) {
  const auto value = number_of<double>(word);
  return value && is_amount(*value) ? value : std::nullopt;
}

}  // namespace syncline::calibrate
