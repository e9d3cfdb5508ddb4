// Latencies and bandwidths of different paths share a prior: all latencies are NCCL's constants
// times one factor of the fabric; all bandwidths are near one rate.
#include "studies/calibrate/scale_fit.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>
#include <tuple>

#include "core/base/error.h"
#include "core/base/statistics.h"
#include "core/cost/least_squares.h"

namespace syncline::calibrate {
namespace {

double bus_rate(const SizeFit& table) {
  const cost::MeasuredTable& measured = table.measured;
  const double times = cost::bus_factor(*measured.kind, measured.nodes * measured.gpus_per_node);
  double rate = 0;
  for (const auto& point : table.points) {
    rate = std::max(rate, times * static_cast<double>(point.size) / point.time);
  }
  return rate;
}

// Best measured rates: between nodes, per number of GPUs of a node, and inside one.
struct MeasuredRates {
  std::map<int, BytesPerSecond> between;
  BytesPerSecond inside = 0;
};

// Returns the best rates in the tables: between nodes by GPUs per node, and inside a node.
MeasuredRates rates_of(const std::vector<SizeFit>& tables, const cost::MeasuredCostModel& model) {
  MeasuredRates rates;
  double ring_inside = 0;
  double any_inside = 0;
  const bool only_trees =
      std::none_of(model.tables.begin(), model.tables.end(), [](const auto& table) {
        return cost::ring_like(table.kind) && table.nodes > 1 &&
               table.forced != cost::ForcedAlgorithm::kTree;
      });
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const cost::TableCostModel& table = model.tables[i];
    if (!cost::ring_like(table.kind) || table.slow > 0) continue;
    // Forced trees do not show their network's bandwidth; they count only without other tables.
    if (table.forced == cost::ForcedAlgorithm::kTree && !only_trees) continue;
    const double rate = bus_rate(tables[i]);
    if (table.nodes > 1) {
      auto& best = rates.between[table.gpus_per_node];
      best = std::max(best, rate);
    } else {
      // An all-reduce inside a node may run in the switch (NVLS); the other collectives are rings.
      if (table.kind != collective::CollectiveKind::kAllReduce) {
        ring_inside = std::max(ring_inside, rate);
      }
      any_inside = std::max(any_inside, rate);
    }
  }
  rates.inside = ring_inside > 0 ? ring_inside : any_inside;
  return rates;
}

// Returns the rows between nodes, at most kMax per table, so that fine tables do not dominate.
std::vector<cost::PathRow> rows_between(const std::vector<SizeFit>& tables,
                                        const cost::MeasuredCostModel& model,
                                        const cost::ScaleCostModel& scale) {
  constexpr std::size_t kMax = 64;
  std::vector<cost::PathRow> rows;
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const cost::TableCostModel& table = model.tables[i];
    if (table.nodes == 1 || table.slow > 0 || !cost::ring_like(table.kind)) continue;
    const double share = cost::rate_share(scale, table.gpus_per_node);
    for (const std::size_t place : spread_points(tables[i].points, kMax)) {
      const cost::MeasuredPoint& point = tables[i].points[place];
      rows.push_back({table.kind, static_cast<double>(point.size), table.nodes, table.gpus_per_node,
                      share, point.time, table.forced, i});
    }
  }
  return rows;
}

// Returns the median error over the rows of 64 KiB and more; over all if there are none.
double error_of(const cost::ScaleCostModel& scale, const std::vector<cost::PathRow>& rows) {
  constexpr double kLarge = 65536;
  const auto is_large = [](const cost::PathRow& row) { return row.bytes >= kLarge; };
  const bool any = std::ranges::any_of(rows, is_large);
  std::vector<double> errors;
  for (const cost::PathRow& row : rows) {
    if (any && !is_large(row)) continue;
    const cost::StepPath path = cost::PathChoice(scale.graph, row.kind, row.nodes,
                                                 row.gpus_per_node, row.forced)(row.bytes);
    const double time = cost::step_time(cost::step_cost_model_of(scale, path), row.kind, row.bytes,
                                        row.nodes, row.gpus_per_node, row.share);
    errors.push_back(std::abs(time / row.time - 1));
  }
  return errors.empty() ? 0 : median(std::move(errors));
}

// Returns the factor of a step inside a node over NCCL's constant: halfway, in logarithms, between
// 1 and the value from tables of one node. There small payloads also wait for launches.
double inside_scale(const cost::MeasuredCostModel& model) {
  const bool measured = std::any_of(model.tables.begin(), model.tables.end(),
                                    [](const auto& table) { return table.nodes == 1; });
  constexpr cost::StepPath kPath{false, collective::NcclProtocol::kLl};
  return measured ? std::sqrt(model.node.step / cost::nccl_step_latency(kPath, false)) : 1;
}

// Fits the part between nodes: first the rates, used by every row; then the graph with the
// likeliest rows, with its paths' cost models.
cost::ScaleCostModel fit_scale(const std::vector<SizeFit>& tables,
                               const cost::MeasuredCostModel& model) {
  const MeasuredRates rates = rates_of(tables, model);
  cost::ScaleCostModel scale;
  scale.inside = rates.inside;
  constexpr BytesPerSecond kPort = 25e9;  // 200 Gbit/s
  bool fast = false;
  double bus = 0;
  for (const auto& [gpus, rate] : rates.between) {
    scale.rates.push_back({gpus, rate});
    fast = fast || rate > kPort * gpus;
    bus = std::max(bus, rate);
  }
  const auto rows = rows_between(tables, model, scale);
  cost::ScaleCostModel found = find_graph(rows, bus, fast, inside_scale(model));
  found.rates = std::move(scale.rates);
  found.inside = scale.inside;
  found.in_sample = error_of(found, rows);
  return found;
}

// Returns the median ratio of a table's times of 1 MiB and more to those of a cost model.
double slowness(const SizeFit& table, const cost::MeasuredCostModel& model) {
  constexpr Bytes kLarge = 1 << 20;
  std::vector<double> ratios;
  for (const auto& point : table.points) {
    if (point.size < kLarge) continue;
    const auto answer = cost::cost_model_time(model, *table.measured.kind,
                                              static_cast<double>(point.size), table.measured.nodes,
                                              table.measured.gpus_per_node, table.measured.forced);
    if (answer) ratios.push_back(point.time / answer->time);
  }
  return ratios.empty() ? 1 : median(std::move(ratios));
}

// Returns the cost model of all tables but `out`.
cost::MeasuredCostModel without(const std::vector<SizeFit>& tables,
                                const cost::MeasuredCostModel& model, std::size_t out) {
  const auto at = static_cast<std::ptrdiff_t>(out);
  std::vector<SizeFit> others = tables;
  others.erase(others.begin() + at);
  cost::MeasuredCostModel rest = model;
  rest.tables.erase(rest.tables.begin() + at);
  rest.scale = fit_scale(others, rest);
  return rest;
}

// Marks the one table of a ladder of counts that was disturbed as a whole, and returns true if
// there is one. Without it the others' cost model improves most, by more than a tenth, and the
// table is slower than that model by a quarter or more. Requires three other tables.
bool mark_slow_run(const std::vector<SizeFit>& tables, cost::MeasuredCostModel& model) {
  constexpr double kSlow = 1.25;
  constexpr double kBetter = 0.9;
  constexpr int kMin = 4;
  std::map<std::tuple<collective::CollectiveKind, cost::ForcedAlgorithm, int>, int> ladders;
  const auto ladder_of = [](const cost::TableCostModel& table) {
    return std::make_tuple(table.kind, table.forced, table.gpus_per_node);
  };
  for (const cost::TableCostModel& table : model.tables) {
    if (table.nodes > 1 && cost::ring_like(table.kind)) ++ladders[ladder_of(table)];
  }
  double least = kBetter * model.scale->in_sample;
  double slow = 0;
  cost::TableCostModel* found = nullptr;
  for (std::size_t i = 0; i < tables.size(); ++i) {
    cost::TableCostModel& table = model.tables[i];
    if (table.nodes == 1 || !cost::ring_like(table.kind) || ladders[ladder_of(table)] < kMin)
      continue;
    const cost::MeasuredCostModel rest = without(tables, model, i);
    const double ratio = slowness(tables[i], rest);
    if (rest.scale->in_sample >= least || ratio < kSlow) continue;
    least = rest.scale->in_sample;
    slow = ratio - 1;
    found = &table;
  }
  if (found != nullptr) found->slow = slow;
  return found != nullptr;
}

// Fits the cost of small payloads inside a node, by the steps of a ring.
cost::NodeCostModel fit_node(const cost::MeasuredCostModel& model) {
  constexpr double kSmall = 4096;
  constexpr double kNoise = 0.08;
  const cost::StepPath path{false, collective::NcclProtocol::kLl};
  const std::array<double, 2> centre = {std::log(cost::nccl_base_latency(path)),
                                        std::log(cost::nccl_step_latency(path, false))};
  const std::array<double, 2> spread = {0.7, 1.5};
  std::vector<std::pair<double, double>> rows;  // steps, time
  for (const cost::TableCostModel& table : model.tables) {
    if (table.nodes != 1 || table.min_bytes > kSmall || !cost::ring_like(table.kind)) continue;
    if (table.forced == cost::ForcedAlgorithm::kTree) continue;
    rows.emplace_back(cost::ring_steps(table.kind, table.gpus_per_node),
                      cost::size_time(table.cost_model, table.min_bytes));
  }
  const auto residuals = [&](const std::array<double, 2>& p, double* out) {
    for (const auto& [steps, time] : rows) {
      *out++ =
          cost::damp_error(std::log((std::exp(p[0]) + std::exp(p[1]) * steps) / time) / kNoise);
    }
    for (std::size_t i = 0; i < 2; ++i) *out++ = (p[i] - centre[i]) / spread[i];
  };
  const auto [found, squares] = cost::least_squares<2>(residuals, rows.size() + 2, centre);
  return {std::exp(found[0]), std::exp(found[1])};
}

double log_interpolation(const cost::MeasuredPoint& a, const cost::MeasuredPoint& b, double bytes) {
  const double share = std::log(bytes / static_cast<double>(a.size)) /
                       std::log(static_cast<double>(b.size) / static_cast<double>(a.size));
  return std::exp((1 - share) * std::log(a.time) + share * std::log(b.time));
}

// Returns the noise of times measured twice; 0 if no size has both.
double noise_of(const std::vector<cost::MeasuredPoint>& points, const std::vector<double>& others) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (others[i] > 0) ratios.push_back(others[i] / points[i].time);
  }
  return noise_of_repeats(ratios);
}

// Returns the usual spread of times that are medians; 0 if there are none.
double noise_of_medians(const cost::MeasuredTable& table) {
  std::vector<double> spreads;
  for (const cost::MeasuredRow& row : table.rows) {
    if (row.spread > 0) spreads.push_back(row.spread);
  }
  return spreads.empty() ? 0 : median(std::move(spreads));
}

// Joins the points of two runs; a size in both gets its mean time. The distance of the two times
// gives the noise of one.
SizeFit joined(const SizeFit& a, const SizeFit& b) {
  std::map<Bytes, std::vector<double>> times;
  for (const auto* list : {&a.points, &b.points}) {
    for (const auto& point : *list) times[point.size].push_back(point.time);
  }
  SizeFit both;
  both.measured = a.measured;
  both.measured.source += ", " + b.measured.source;
  std::vector<double> ratios;
  for (const auto& [size, list] : times) {
    both.points.push_back({size, list.size() == 1 ? list[0] : (list[0] + list[1]) / 2});
    if (list.size() > 1) ratios.push_back(list[1] / list[0]);
  }
  both.outliers = a.outliers;
  both.outliers.insert(both.outliers.end(), b.outliers.begin(), b.outliers.end());
  both.noise = std::max({a.noise, b.noise, noise_of_repeats(ratios)});
  return both;
}

// Returns the points of every table; tables of the same counts, kind and algorithm become one.
std::vector<SizeFit> gathered(const std::vector<cost::MeasuredTable>& tables) {
  std::vector<SizeFit> gathered;
  for (const cost::MeasuredTable& measured : tables) {
    assert(measured.kind && measured.nodes > 0 && measured.gpus_per_node > 0);
    SizeFit points = points_of(measured);
    if (points.points.empty()) {
      throw InputError(measured.source + ": line " + std::to_string(measured.line) +
                       ": the table has no row that could be used: every size is 0, has no time " +
                       "or a wrong result");
    }
    const auto same = std::ranges::find_if(
        gathered, [&](const SizeFit& other) { return cost::same_shape(other.measured, measured); });
    if (same == gathered.end()) {
      gathered.push_back(std::move(points));
    } else {
      *same = joined(*same, points);
    }
  }
  return gathered;
}

cost::TableCostModel table_cost_model(const SizeFit& fit) {
  cost::TableCostModel model;
  model.kind = *fit.measured.kind;
  model.nodes = fit.measured.nodes;
  model.gpus_per_node = fit.measured.gpus_per_node;
  model.forced = fit.measured.forced;
  model.cost_model = fit.cost_model;
  model.min_bytes = static_cast<double>(fit.points.front().size);
  model.max_bytes = static_cast<double>(fit.points.back().size);
  model.rows = static_cast<int>(fit.points.size());
  model.in_sample = fit.in_sample;
  model.left_out = fit.left_out;
  model.spreads = fit.spreads;
  model.clean = cost::is_clean(fit.measured);
  model.source = fit.measured.source;
  for (const auto& point : fit.outliers) model.outliers.push_back(point.size);
  return model;
}

}  // namespace

SizeFit points_of(const cost::MeasuredTable& table) {
  SizeFit fit;
  fit.measured = table;
  std::map<Bytes, std::pair<double, double>> both;  // out of place, in place; 0: none
  for (const auto& point : cost::usable_points(table, cost::Place::kOutOfPlace)) {
    both[point.size].first = point.time;
  }
  for (const auto& point : cost::usable_points(table, cost::Place::kInPlace)) {
    both[point.size].second = point.time;
  }
  std::vector<cost::MeasuredPoint> all;
  std::vector<double> others;
  for (const auto& [size, times] : both) {
    all.push_back({size, times.first > 0 ? times.first : times.second});
    others.push_back(times.first > 0 ? times.second : 0);
  }
  // The two times of a size check each other: if they differ, the one far from the line between the
  // neighbours is disturbed. The first row has no previous neighbour.
  constexpr double kWarmUp = 1.25;
  constexpr double kApart = 1.3;
  for (std::size_t i = 0; i < all.size(); ++i) {
    bool disturbed = false;
    const double other = others[i];
    if (i == 0 && all.size() > 2) disturbed = all[0].time > kWarmUp * all[1].time;
    if (i > 0 && i + 1 < all.size() && other > 0 &&
        std::abs(std::log(other / all[i].time)) > std::log(kApart)) {
      const double expected =
          log_interpolation(all[i - 1], all[i + 1], static_cast<double>(all[i].size));
      disturbed = std::abs(std::log(all[i].time / expected)) > std::log(kApart) &&
                  std::abs(std::log(other / expected)) < std::log(kApart);
    }
    (disturbed ? fit.outliers : fit.points).push_back(all[i]);
  }
  if (!cost::is_clean(table)) fit.noise = noise_of(all, others);
  fit.noise = std::max(fit.noise, noise_of_medians(table));
  return fit;
}

// Fits each table by itself first, then their common parts: inside a node and between nodes.
FittedTables calibrate(const std::vector<cost::MeasuredTable>& tables) {
  FittedTables result;
  result.tables = gathered(tables);
  bool between = false;
  for (SizeFit& table : result.tables) {
    table = fit_sizes(std::move(table));
    const cost::TableCostModel& model =
        result.cost_model.tables.emplace_back(table_cost_model(table));
    between = between || (model.nodes > 1 && cost::ring_like(model.kind));
  }
  result.cost_model.node = fit_node(result.cost_model);
  if (!between) return result;
  result.cost_model.scale = fit_scale(result.tables, result.cost_model);
  if (mark_slow_run(result.tables, result.cost_model)) {
    result.cost_model.scale = fit_scale(result.tables, result.cost_model);
  }
  return result;
}

}  // namespace syncline::calibrate
