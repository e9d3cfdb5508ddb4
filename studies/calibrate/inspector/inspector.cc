// Reads logs of NCCL's Inspector (NCCL's profiler plugin, plugins/profiler/inspector, NCCL 2.28 and
// later): one file per process, one line of JSON per collective:
//
//   {"header": {"id", "rank", "n_ranks", "nnodes"}, "metadata": {...},
//    "coll_perf": {"coll": "AllReduce", "coll_sn", "coll_msg_size_bytes", "coll_exec_time_us",
//                  "coll_timing_source": "kernel_gpu", ...}}
//
// A rank's time includes its wait for the others, so ranks are joined by the least time, that of
// the latest rank. The key is communicator, collective and coll_sn: NCCL counts coll_sn per kind of
// collective and communicator (comm->seqNumber[func], src/enqueue.cc). Repeated collectives of one
// size give the median over coll_sn: a job's times have a long tail on one side (other traffic,
// clocks), which shifts a mean but not a median.
//
// Sizes are counted as in nccl-tests: coll_msg_size_bytes is a rank's input for all-gather and its
// output for reduce-scatter, a share of the payload (inspectorComputeCollBw multiplies it
// likewise).
#include "studies/calibrate/inspector/inspector.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/base/error.h"
#include "core/base/statistics.h"
#include "core/cost/measured_table.h"
#include "formats/nccl_log/nccl_log_parts.h"
#include "formats/text/files.h"
#include "studies/calibrate/scale_fit.h"

namespace syncline::calibrate {
namespace {

using Line = nlohmann::json;

// One line, with checked keys.
class Fields {
 public:
  Fields(const std::string& file, int line, std::string_view text)
      : place_(file + ": line " + std::to_string(line) + ": "),
        line_(Line::parse(text, nullptr, false)) {
    if (!line_.is_discarded() && line_.is_object()) return;
    const bool begins = !text.empty() && text.front() == '{';
    throw InputError(
        place_ + (begins ? "cut off, or no valid JSON" : "expected an object of NCCL's Inspector"));
  }

  bool has(const char* part) const { return line_.contains(part); }

  std::int64_t integer(const char* part, const char* key, std::int64_t least,
                       std::int64_t most) const {
    const Line& value = at(part, key);
    if (value.is_number_integer()) {
      const auto number = value.get<std::int64_t>();
      if (number >= least && number <= most) return number;
    }
    throw InputError(place_ + part + "." + key + ": expected a whole number from " +
                     std::to_string(least) + " to " + std::to_string(most) + ", found " +
                     value.dump());
  }

  std::string text(const char* part, const char* key) const {
    const Line& value = at(part, key);
    if (!value.is_string()) {
      throw InputError(place_ + part + "." + key + ": expected a text, found " + value.dump());
    }
    return value.get<std::string>();
  }

  double amount(const char* part, const char* key) const {
    const Line& value = at(part, key);
    constexpr double kMax = 1e12;
    if (value.is_number()) {
      const double number = value.get<double>();
      if (number >= 0 && number < kMax) return number;
    }
    throw InputError(place_ + part + "." + key + ": expected microseconds, found " + value.dump());
  }

 private:
  const Line& at(const char* part, const char* key) const {
    const auto outer = line_.find(part);
    if (outer != line_.end() && outer->is_object()) {
      const auto inner = outer->find(key);
      if (inner != outer->end()) return *inner;
    }
    throw InputError(place_ + "expected the key " + part + "." + key +
                     ", as NCCL's Inspector writes it");
  }

  std::string place_;
  Line line_;
};

// Returns the median's spread, including rounding to microseconds, which repeats do not reduce.
double spread_of(const std::vector<Seconds>& times, Seconds middle) {
  const double spread = spread_of_median(times);
  return spread > 0 ? std::hypot(spread, kMicrosecond / std::sqrt(12.0) / middle) : 0;
}

// The Inspector's lines, joined over ranks.
class JoinedRanks {
 public:
  // Adds a line. Throws InputError, naming file and line.
  void add(const std::string& file, int line, std::string_view text) {
    const Fields fields(file, line, text);
    constexpr std::int64_t kMaxRanks = 1 << 16;
    const std::string id = fields.text("header", "id");
    const auto ranks = static_cast<int>(fields.integer("header", "n_ranks", 1, kMaxRanks));
    const auto rank = static_cast<int>(fields.integer("header", "rank", 0, ranks - 1));
    if (fields.has("dump_stats")) {
      auto& lost = lost_[{id, rank}];
      lost = std::max(lost, fields.integer("dump_stats", "coll_dropped_total", 0, INT64_MAX));
    }
    if (!fields.has("coll_perf")) return;  // single messages, or the dump itself
    const std::string name = fields.text("coll_perf", "coll");
    const std::int64_t number = fields.integer("coll_perf", "coll_sn", 0, INT64_MAX);
    constexpr std::int64_t kMaxBytes = std::int64_t{1} << 44;
    const Bytes bytes = fields.integer("coll_perf", "coll_msg_size_bytes", 0, kMaxBytes);
    const Seconds time = fields.amount("coll_perf", "coll_exec_time_us") * kMicrosecond;
    const std::string source = fields.text("coll_perf", "coll_timing_source");
    const auto nodes = static_cast<int>(fields.integer("header", "nnodes", 1, kMaxRanks));
    if (source != "kernel_gpu") {
      ++host_timed_;
      const bool known = source == "kernel_cpu" || source == "collective_cpu";
      host_sources_.insert(known ? source : "unknown");
      return;
    }
    if (time <= 0 || bytes == 0) {
      ++timeless_;
      return;
    }
    const std::string kind = test_name(name);
    const bool shares = kind == "all_gather" || kind == "reduce_scatter";
    const Bytes size = shares ? bytes * ranks : bytes;
    auto [found, fresh] = collectives_.try_emplace(Key(id, name, number));
    Joined& joined = found->second;
    if (fresh) {
      joined = {kind, ranks, nodes, size, time, std::vector<bool>(static_cast<std::size_t>(ranks)),
                true};
    }
    if (joined.ranks != ranks || joined.nodes != nodes || joined.size != size) {
      joined.agree = false;
      return;
    }
    if (joined.seen[static_cast<std::size_t>(rank)]) {
      ++repeated_;
      return;
    }
    joined.seen[static_cast<std::size_t>(rank)] = true;
    joined.least = std::min(joined.least, time);
  }

  // Returns the tables. Throws InputError, naming `source`, if no collective is complete.
  std::vector<cost::MeasuredTable> tables(const std::string& source) const {
    const Measured all = measured();
    const std::vector<std::string> left_out = dropped(all);
    std::vector<cost::MeasuredTable> tables;
    for (const auto& [shape, sizes] : all.times) {
      cost::MeasuredTable& table = tables.emplace_back();
      std::tie(table.test, table.ranks, table.nodes) = shape;
      table.gpus_per_node = table.ranks / table.nodes;
      table.source = source;
      table.line = 1;
      table.kind = cost::kind_named(table.test);
      for (const auto& [size, times] : sizes) {
        cost::MeasuredRow& row = table.rows.emplace_back();
        row.size = size;
        row.out_of_place = median(times);
        row.spread = spread_of(times, *row.out_of_place);
      }
    }
    if (tables.empty()) {
      throw InputError(source + ": no collective that NCCL's Inspector timed on every rank" +
                       (left_out.empty() ? "" : "; left out: " + left_out.front()) +
                       "; give the folder with the files of all ranks");
    }
    tables.front().left_out = left_out;
    return tables;
  }

 private:
  // One collective, joined over the ranks read so far.
  struct Joined {
    std::string kind;  // "all_reduce"; empty: not in nccl-tests
    int ranks = 0;
    int nodes = 0;
    Bytes size = 0;  // as counted by nccl-tests
    Seconds least = 0;
    std::vector<bool> seen;  // per rank
    bool agree = true;       // all ranks name the same collective
  };
  // Communicator, NCCL's name of the collective, coll_sn.
  using Key = std::tuple<std::string, std::string, std::int64_t>;
  // Kind, ranks, nodes.
  using Shape = std::tuple<std::string, int, int>;
  // Input of tables(): collectives that all ranks reported.
  struct Measured {
    std::map<Shape, std::map<Bytes, std::vector<Seconds>>> times;
    std::map<Shape, std::size_t> incomplete;
    std::size_t uneven = 0;
    std::size_t disagreeing = 0;
    int most_ranks = 0;  // most ranks that reported one incomplete collective
  };

  // Returns the times of collectives that all ranks reported alike, and counts the others.
  Measured measured() const {
    Measured measured;
    for (const auto& [key, joined] : collectives_) {
      const Shape shape(joined.kind, joined.ranks, joined.nodes);
      const auto seen = std::count(joined.seen.begin(), joined.seen.end(), true);
      if (joined.ranks < 2) continue;  // exchanges nothing
      if (!joined.agree) {
        ++measured.disagreeing;
      } else if (seen < joined.ranks) {
        ++measured.incomplete[shape];
        measured.most_ranks = std::max(measured.most_ranks, static_cast<int>(seen));
      } else if (joined.ranks % joined.nodes != 0) {
        ++measured.uneven;
      } else {
        measured.times[shape][joined.size].push_back(joined.least);
      }
    }
    return measured;
  }

  // Returns sentences on the lines and collectives that are left out.
  std::vector<std::string> dropped(const Measured& measured) const {
    std::vector<std::string> list;
    const auto say = [&](std::size_t count, const std::string& one, const std::string& several,
                         const std::string& what) {
      if (count > 0) list.push_back(std::to_string(count) + (count == 1 ? one : several) + what);
    };
    for (const auto& [shape, count] : measured.incomplete) {
      const auto& [kind, ranks, nodes] = shape;
      say(count, " collective (", " collectives (",
          kind + " of " + std::to_string(ranks) + " ranks) that not all ranks reported, at most " +
              std::to_string(measured.most_ranks) +
              ": the least time would contain waiting for the others");
    }
    std::string sources;
    for (const std::string& source : host_sources_) {
      sources += (sources.empty() ? "" : ", ") + source;
    }
    say(host_timed_, " line", " lines",
        " whose time the host took (" + sources + "): only kernel_gpu is the collective's own");
    say(timeless_, " line", " lines", " without time or bytes");
    say(repeated_, " line tells", " lines tell",
        " the same collective of the same rank again: two runs in one folder?");
    say(measured.uneven, " collective", " collectives",
        " whose ranks do not divide into their nodes");
    say(measured.disagreeing, " collective", " collectives",
        " for which ranks report different sizes or counts");
    std::int64_t lost = 0;
    for (const auto& [rank, count] : lost_) lost = std::max(lost, count);
    if (lost > 0) {
      list.push_back("up to " + std::to_string(lost) +
                     " collectives of a rank that the Inspector itself lost: a shorter "
                     "NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS or a larger "
                     "NCCL_INSPECTOR_DUMP_COLL_RING_SIZE keeps them");
    }
    return list;
  }

  std::map<Key, Joined> collectives_;
  std::size_t host_timed_ = 0;
  std::set<std::string> host_sources_;
  std::size_t timeless_ = 0;
  std::size_t repeated_ = 0;
  std::map<std::pair<std::string, int>, std::int64_t> lost_;  // per communicator and rank
};

namespace fs = std::filesystem;

constexpr long long kLongestLine = 1ll << 24;

// Reads a file's lines one by one, unpacked if it is gzipped: such files have any size.
class Lines {
 public:
  explicit Lines(const std::string& path)
      : path_(path), file_(gzdopen(open_to_read(path, "a log"), "rb")) {
    if (file_ == nullptr) throw std::bad_alloc();
  }
  ~Lines() { gzclose(file_); }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  // Reads a line; false at the end. Throws InputError for damaged gzip data or above 16 MiB.
  bool next(std::string& line) {
    line.clear();
    const z_off_t begun = gztell(file_);
    while (gzgets(file_, part_.data(), static_cast<int>(part_.size())) != nullptr) {
      line += part_.data();
      if (line.ends_with('\n')) return true;
      if (gztell(file_) - begun > kLongestLine) {  // zeros end no line and add nothing to it
        throw InputError(path_ + ": a line of more than 16 MiB: no log of NCCL's Inspector");
      }
    }
    int error = Z_OK;
    gzerror(file_, &error);
    if (error != Z_OK) throw InputError(path_ + ": gzip: damaged or cut off");
    return !line.empty();
  }

  // Returns the number of unpacked bytes read.
  long long unpacked_bytes() const { return gztell(file_); }

 private:
  std::string path_;
  gzFile file_;
  std::array<char, 1 << 16> part_{};
};

bool blank(std::string_view line) {
  return line.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

void add_file(const std::string& path, JoinedRanks& ranks) {
  Lines lines(path);
  std::string line;
  for (int number = 1; lines.next(line); ++number) {
    if (!blank(line)) ranks.add(path, number, line);
  }
}

// Returns the files of a folder that may be the Inspector's, by name.
std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    std::string name = entry->path().filename().string();
    if (name.ends_with(".gz")) name.resize(name.size() - 3);
    const bool wanted =
        name.ends_with(".log") || name.ends_with(".json") || name.ends_with(".jsonl");
    std::error_code no_file;
    if (wanted && entry->is_regular_file(no_file)) files.push_back(entry->path().string());
  }
  if (error) throw InputError(folder + ": " + error.message());
  std::sort(files.begin(), files.end());
  return files;
}

bool begins_like_inspector(const std::string& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return false;
  try {
    Lines lines(path);
    std::string line;
    while (lines.unpacked_bytes() < kLongestLine && lines.next(line)) {
      if (!blank(line)) return is_inspector_text(line);
    }
  } catch (const InputError&) {  // the reader reports the mistake
  }
  return false;
}

}  // namespace

bool is_inspector_text(std::string_view begin) {
  const std::size_t first = begin.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || begin[first] != '{') return false;
  const std::string_view line = begin.substr(0, begin.find('\n', first));
  if (line.find("\"header\"") == std::string_view::npos) return false;
  return std::ranges::any_of(
      std::array<std::string_view, 3>{"\"coll_perf\"", "\"p2p_perf\"", "\"dump_stats\""},
      [&](std::string_view key) { return line.find(key) != std::string_view::npos; });
}

bool is_inspector_log(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return begins_like_inspector(path);
  const std::vector<std::string> files = files_in(path);
  return std::any_of(files.begin(), files.end(), begins_like_inspector);
}

std::vector<cost::MeasuredTable> read_inspector_log(const std::string& path) {
  JoinedRanks ranks;
  std::error_code error;
  if (fs::is_directory(path, error)) {
    const std::vector<std::string> files = files_in(path);
    if (files.empty()) {
      throw InputError(path +
                       ": a folder without a file of NCCL's Inspector (NAME.log, .json or .jsonl, "
                       "also .gz; not NCCL_INSPECTOR_PROM_DUMP's)");
    }
    for (const std::string& file : files) add_file(file, ranks);
  } else {
    add_file(path, ranks);
  }
  return ranks.tables(path);
}

std::vector<cost::MeasuredTable> inspector_tables(
    const std::string& source, const std::vector<std::pair<std::string, std::string>>& files) {
  JoinedRanks ranks;
  for (const auto& [name, text] : files) {
    int number = 1;
    for (std::size_t at = 0; at < text.size(); ++number) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      const std::string_view line = std::string_view(text).substr(at, end - at);
      if (!blank(line)) ranks.add(name, number, line);
      at = end + 1;
    }
  }
  return ranks.tables(source);
}

}  // namespace syncline::calibrate
