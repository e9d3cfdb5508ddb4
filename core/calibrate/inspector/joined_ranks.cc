#include "core/calibrate/inspector/joined_ranks.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/calibrate/nccl_log_parts.h"
#include "core/calibrate/size_fit.h"
#include "core/error.h"
#include "core/statistics.h"

namespace syncline::calibrate {
namespace {

using Line = nlohmann::json;

// One line, its keys checked.
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
    constexpr double kMost = 1e12;
    if (value.is_number()) {
      const double number = value.get<double>();
      if (number >= 0 && number < kMost) return number;
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

// Times are told in whole microseconds, which no repeating mends.
double spread_of(const std::vector<Seconds>& times, Seconds middle) {
  const double spread = spread_of_median(times);
  return spread > 0 ? std::hypot(spread, kMicrosecond / std::sqrt(12.0) / middle) : 0;
}

std::string count_of(std::size_t count, const char* one, const char* several) {
  return std::to_string(count) + " " + (count == 1 ? one : several);
}

}  // namespace

void JoinedRanks::add(const std::string& file, int line, std::string_view text) {
  const Fields fields(file, line, text);
  constexpr std::int64_t kMostRanks = 1 << 16;
  const std::string id = fields.text("header", "id");
  const auto ranks = static_cast<int>(fields.integer("header", "n_ranks", 1, kMostRanks));
  const auto rank = static_cast<int>(fields.integer("header", "rank", 0, ranks - 1));
  if (fields.has("dump_stats")) {
    auto& lost = lost_[{id, rank}];
    lost = std::max(lost, fields.integer("dump_stats", "coll_dropped_total", 0, INT64_MAX));
  }
  if (!fields.has("coll_perf")) return;  // of single messages, or of the dump itself
  const std::string name = fields.text("coll_perf", "coll");
  const std::int64_t number = fields.integer("coll_perf", "coll_sn", 0, INT64_MAX);
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 44;
  const Bytes bytes = fields.integer("coll_perf", "coll_msg_size_bytes", 0, kMostBytes);
  const Seconds time = fields.amount("coll_perf", "coll_exec_time_us") * kMicrosecond;
  const std::string source = fields.text("coll_perf", "coll_timing_source");
  const auto nodes = static_cast<int>(fields.integer("header", "nnodes", 1, kMostRanks));
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

JoinedRanks::Measured JoinedRanks::measured() const {
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

std::vector<std::string> JoinedRanks::dropped(const Measured& measured) const {
  std::vector<std::string> list;
  for (const auto& [shape, count] : measured.incomplete) {
    const auto& [kind, ranks, nodes] = shape;
    list.push_back(count_of(count, "collective", "collectives") + " (" + kind + " of " +
                   std::to_string(ranks) + " ranks) that not all ranks told of, at most " +
                   std::to_string(measured.most_ranks) +
                   ": the least time would hold waiting for the others");
  }
  if (host_timed_ > 0) {
    std::string sources;
    for (const std::string& source : host_sources_) {
      sources += (sources.empty() ? "" : ", ") + source;
    }
    list.push_back(count_of(host_timed_, "line", "lines") + " whose time the host took (" +
                   sources + "): only kernel_gpu is the collective's own");
  }
  if (timeless_ > 0)
    list.push_back(count_of(timeless_, "line", "lines") + " without time or bytes");
  if (repeated_ > 0) {
    list.push_back(count_of(repeated_, "line tells", "lines tell") +
                   " the same collective of the same rank again: two runs in one folder?");
  }
  if (measured.uneven > 0) {
    list.push_back(count_of(measured.uneven, "collective", "collectives") +
                   " whose ranks do not divide into their nodes");
  }
  if (measured.disagreeing > 0) {
    list.push_back(count_of(measured.disagreeing, "collective", "collectives") +
                   " of which ranks tell different sizes or counts");
  }
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

std::vector<cost::MeasuredTable> JoinedRanks::tables(const std::string& source) const {
  const Measured all = measured();
  const std::vector<std::string> left_out = dropped(all);
  std::vector<cost::MeasuredTable> tables;
  for (const auto& [shape, sizes] : all.times) {
    cost::MeasuredTable& table = tables.emplace_back();
    std::tie(table.test, table.ranks, table.nodes) = shape;
    table.gpus_per_node = table.ranks / table.nodes;
    table.source = source;
    table.line = 1;
    for (const auto kind : collective::kAllCollectiveKinds) {
      if (to_string(kind) == table.test) table.kind = kind;
    }
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

}  // namespace syncline::calibrate
