#include "core/cost/measured_table.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/error.h"
#include "core/base/statistics.h"

namespace syncline::cost {

std::optional<collective::CollectiveKind> kind_named(std::string_view name) {
  for (const auto kind : collective::kAllCollectiveKinds) {
    if (collective::to_string(kind) == name) return kind;
  }
  return std::nullopt;
}

std::vector<MeasuredPoint> usable_points(const MeasuredTable& table, Place place) {
  std::map<Bytes, std::vector<double>> times;
  for (const MeasuredRow& row : table.rows) {
    const bool out = place == Place::kOutOfPlace;
    const auto& time = out ? row.out_of_place : row.in_place;
    const auto& wrong = out ? row.out_of_place_wrong : row.in_place_wrong;
    if (row.size <= 0 || !time || *time <= 0 || wrong.value_or(0) != 0) continue;
    times[row.size].push_back(*time);
  }
  std::vector<MeasuredPoint> points;
  for (const auto& [size, list] : times) points.push_back({size, percentile(list, 0.5)});
  return points;
}

bool is_clean(const MeasuredTable& table) {
  if (table.failed) return false;
  constexpr double kMedian = 0.06;
  constexpr double kNinetieth = 0.30;
  const auto out = usable_points(table, Place::kOutOfPlace);
  const auto in = usable_points(table, Place::kInPlace);
  std::vector<double> differences;
  auto other = in.begin();
  for (const MeasuredPoint& point : out) {
    while (other != in.end() && other->size < point.size) ++other;
    if (other == in.end()) break;
    if (other->size == point.size) differences.push_back(std::abs(other->time / point.time - 1));
  }
  for (const MeasuredRow& row : table.rows) {
    if (row.spread > 0) differences.push_back(row.spread);
  }
  if (differences.size() < 3) return false;
  return percentile(differences, 0.5) < kMedian && percentile(differences, 0.9) < kNinetieth;
}

bool same_shape(const MeasuredTable& a, const MeasuredTable& b) {
  return a.kind == b.kind && a.nodes == b.nodes && a.gpus_per_node == b.gpus_per_node &&
         a.forced == b.forced;
}

namespace {

std::string shown_ranks(const MeasuredTable& table) {
  if (table.ranks > 0) return std::to_string(table.ranks);
  if (table.least_ranks == 0) return "no number of";
  return std::to_string(table.least_ranks) +
         (table.most_ranks == 0 ? " or more" : " to " + std::to_string(table.most_ranks));
}

}  // namespace

void set_shape(MeasuredTable& table, int nodes, int gpus_per_node) {
  const std::int64_t ranks = std::int64_t{nodes} * gpus_per_node;
  const bool fits = table.ranks != 0 ? ranks == table.ranks
                                     : ranks >= table.least_ranks &&
                                           (table.most_ranks == 0 || ranks <= table.most_ranks);
  if (nodes < 1 || gpus_per_node < 1 || !fits) {
    throw InputError(table.source + ": line " + std::to_string(table.line) + ": given " +
                     std::to_string(nodes) + " nodes x " + std::to_string(gpus_per_node) +
                     " GPUs, the table shows " + shown_ranks(table) + " ranks");
  }
  table.nodes = nodes;
  table.gpus_per_node = gpus_per_node;
  table.ranks = static_cast<int>(ranks);
}

}  // namespace syncline::cost
