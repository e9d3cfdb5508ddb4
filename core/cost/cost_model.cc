// A question at measured counts is answered by that table's own cost model (cost_model.h). At other
// counts of nodes it is answered by cost models for all counts at once (step_cost_model.h). They
// give NCCL's algorithm and protocol there and their cost, times the error of that cost model at
// the tables' own counts (for a ring at the same message of a step, for a tree at the same
// payload). Inside one node, a log does not show NCCL's choice, so a table of another number of
// GPUs is scaled: the part independent of the payload by the steps of a ring, the rest by the bytes
// that a link carries, and between these by how steeply the time grows with the payload.
#include "core/cost/cost_model.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "core/base/statistics.h"

namespace syncline::cost {
namespace {

Seconds on_line(const SizeLine& line, double bytes) {
  return line.latency + line.seconds_per_byte * bytes;
}

Seconds on_segments(const SizeCostModel& model, double bytes) {
  for (std::size_t i = 0; i + 1 < model.lines.size(); ++i) {
    const SizeLine& line = model.lines[i];
    if (bytes <= line.to) return on_line(line, bytes);
    const SizeLine& next = model.lines[i + 1];
    if (bytes >= next.from) continue;
    const double share = std::log(bytes / line.to) / std::log(next.from / line.to);
    return std::exp((1 - share) * std::log(on_line(line, line.to)) +
                    share * std::log(on_line(next, next.from)));
  }
  return on_line(model.lines.back(), bytes);
}

double octaves(double a, double b) { return std::abs(std::log2(a / b)); }

// Returns how steeply a table's time grows with the payload, in logarithms: 0 latency, 1 bandwidth.
double steepness(const TableCostModel& table, double bytes) {
  const double low = std::clamp(bytes / 2, table.min_bytes, table.max_bytes);
  const double high = std::clamp(bytes * 2, table.min_bytes, table.max_bytes);
  if (high < low * 1.5) return bytes >= table.max_bytes ? 1 : 0;
  const double rise =
      std::log(size_time(table.cost_model, high) / size_time(table.cost_model, low));
  return std::clamp(rise / std::log(high / low), 0.0, 1.0);
}

// Averages weighted estimates of one logarithm.
class Opinions {
 public:
  void add(double weight, double log_time) {
    weights_ += weight;
    sum_ += weight * log_time;
    squares_ += weight * log_time * log_time;
  }
  bool empty() const { return weights_ == 0; }
  double weights() const { return weights_; }
  double mean() const { return sum_ / weights_; }
  double variance() const { return std::max(0.0, squares_ / weights_ - mean() * mean()); }

 private:
  double weights_ = 0;
  double sum_ = 0;
  double squares_ = 0;
};

// Returns the time inside one node, from the tables of other numbers of GPUs and of other
// collectives; and the spread of these, as a standard deviation of logarithms.
std::optional<std::pair<Seconds, double>> time_in_node(const MeasuredCostModel& model,
                                                       collective::CollectiveKind kind,
                                                       double bytes, int gpus,
                                                       ForcedAlgorithm forced) {
  const auto latency = [&](collective::CollectiveKind of, int ranks) {
    return model.node.base + model.node.step * ring_steps(of, ranks);
  };
  Opinions opinions;
  double regimes = 0;  // weighted variances
  for (const TableCostModel& table : model.tables) {
    if (table.nodes != 1 || !ring_like(table.kind) || table.forced != forced) continue;
    const double small = latency(table.kind, gpus) / latency(table.kind, table.gpus_per_node);
    const double large = bus_factor(kind, gpus) / bus_factor(table.kind, table.gpus_per_node);
    // Half the slope of a straight line counts as bandwidth already.
    const double share = std::min(1.0, 2.5 * steepness(table, bytes));
    const double weight =
        (table.kind == kind ? 1 : 0.05) * std::exp(-1.5 * octaves(gpus, table.gpus_per_node));
    const double there = std::log(size_time(table.cost_model, bytes));
    opinions.add(weight, there + (1 - share) * std::log(small) + share * std::log(large));
    // Half way between latency and bandwidth either could be true.
    const double between = std::log(large / small);
    regimes += weight * share * (1 - share) * between * between;
  }
  if (opinions.empty()) return std::nullopt;
  return std::pair{std::exp(opinions.mean()),
                   std::sqrt(opinions.variance() + regimes / opinions.weights())};
}

// Returns the error of the cost model of `path` in tables that took that path, as a logarithm.
double correction(const MeasuredCostModel& model, StepPath path, collective::CollectiveKind kind,
                  double bytes, int nodes, int gpus_per_node) {
  const ScaleCostModel& scale = *model.scale;
  const StepCostModel steps = step_cost_model_of(scale, path);
  const double ranks = static_cast<double>(nodes) * gpus_per_node;
  double sum = 0;
  double weights = 0.05;  // without a nearby table, no correction
  for (const TableCostModel& table : model.tables) {
    if (table.nodes == 1 || table.slow > 0 || !ring_like(table.kind)) continue;
    const double table_ranks = static_cast<double>(table.nodes) * table.gpus_per_node;
    const double alike = path.tree ? bytes : bytes * table_ranks / ranks;
    const PathChoice choice(scale.graph, table.kind, table.nodes, table.gpus_per_node,
                            table.forced);
    const double share = rate_share(scale, table.gpus_per_node);
    double off = 0;
    double near = 0;
    // Smoothed over about two octaves, so that noise of single rows is not carried over.
    constexpr std::array<double, 7> kOctaves = {-1.5, -1, -0.5, 0, 0.5, 1, 1.5};
    for (const double octave : kOctaves) {
      const double at = std::clamp(alike * std::exp2(octave), table.min_bytes, table.max_bytes);
      if (choice(at) != path) continue;
      const double weight = std::exp(-octave * octave / (2 * 0.6 * 0.6)) *
                            std::exp(-0.5 * octaves(at, alike * std::exp2(octave)));
      off += weight *
             std::log(size_time(table.cost_model, at) /
                      step_time(steps, table.kind, at, table.nodes, table.gpus_per_node, share));
      near += weight;
    }
    if (near < 0.05) continue;
    const double weight = std::min(near, 1.0) * (table.kind == kind ? 1 : 0.1) *
                          std::exp(-0.5 * octaves(nodes, table.nodes)) *
                          std::exp(-0.5 * octaves(gpus_per_node, table.gpus_per_node));
    sum += weight * off / near;
    weights += weight;
  }
  return sum / weights;
}

// Returns the time within bounds. At one payload more nodes cannot be faster than the bytes on a
// link allow, nor slower than a ring: its time grows at most with its ranks. A cost model far
// outside these bounds around the nearest table is wrong there.
Seconds bounded(const MeasuredCostModel& model, collective::CollectiveKind kind, double bytes,
                int nodes, int gpus_per_node, ForcedAlgorithm forced, Seconds time) {
  const TableCostModel* nearest = nullptr;
  for (const TableCostModel& table : model.tables) {
    if (table.nodes == 1 || table.slow > 0 || table.kind != kind ||
        table.gpus_per_node != gpus_per_node || table.forced != forced) {
      continue;
    }
    if (nearest == nullptr || octaves(table.nodes, nodes) < octaves(nearest->nodes, nodes)) {
      nearest = &table;
    }
  }
  if (nearest == nullptr) return time;
  constexpr double kSlower = 1.5;
  constexpr double kFaster = 5;  // NCCL may stop using a slow algorithm as nodes are added
  const Seconds there = size_time(nearest->cost_model, bytes);
  const double bus = bus_factor(kind, nodes * gpus_per_node) /
                     bus_factor(kind, nearest->nodes * nearest->gpus_per_node);
  const double steps = ring_steps(kind, nodes, gpus_per_node) /
                       ring_steps(kind, nearest->nodes, nearest->gpus_per_node);
  return std::clamp(time, there * std::min(bus, steps) / kFaster,
                    there * std::max(bus, steps) * kSlower);
}

// True if clean tables of that kind cover these counts.
bool counts_in_range(const MeasuredCostModel& model, collective::CollectiveKind kind, int nodes,
                     int gpus_per_node, ForcedAlgorithm forced) {
  constexpr int kFarther = 4;  // times the largest measured count of nodes
  constexpr double kWell = 0.15;
  std::set<int> node_counts;
  std::set<int> gpu_counts;
  for (const TableCostModel& table : model.tables) {
    if (table.kind != kind || table.forced != forced || !table.clean || table.slow > 0 ||
        (table.nodes == 1) != (nodes == 1)) {
      continue;
    }
    node_counts.insert(table.nodes);
    gpu_counts.insert(table.gpus_per_node);
  }
  if (node_counts.empty()) return false;
  const bool between =
      gpus_per_node >= *gpu_counts.begin() && gpus_per_node <= *gpu_counts.rbegin();
  // Beyond the measured counts NCCL may choose differently: a switch sums (NVLS) from some number
  // of GPUs on, and tables of fewer do not show it.
  if (nodes == 1) return between;
  if (model.scale->in_sample > kWell) return false;
  // Other numbers of GPUs per node follow from ports and from the rate inside a node.
  const double farther =
      octaves(gpus_per_node,
              gpus_per_node > *gpu_counts.rbegin() ? *gpu_counts.rbegin() : *gpu_counts.begin());
  if (!between && (model.scale->inside == 0 || farther > 1)) return false;
  if (node_counts.contains(nodes)) return true;
  return node_counts.size() > 1 && nodes > *node_counts.begin() &&
         nodes <= kFarther * *node_counts.rbegin();
}

// Returns the octaves by which a payload is outside the sizes of a table.
double beyond(const TableCostModel& table, double bytes) {
  return std::log2(std::max({table.min_bytes / bytes, bytes / table.max_bytes, 1.0}));
}

// Returns the distance of a question from the nearest table on the same side of a node's border.
Support support_of(const MeasuredCostModel& model, collective::CollectiveKind kind, double bytes,
                   int nodes, int gpus_per_node, ForcedAlgorithm forced) {
  Support nearest;
  double least = std::numeric_limits<double>::infinity();
  for (const TableCostModel& table : model.tables) {
    if ((table.nodes == 1) != (nodes == 1) || table.slow > 0 || !ring_like(table.kind)) continue;
    const Support support{.table = size_spread(table.spreads, bytes),
                          .sizes = beyond(table, bytes),
                          .nodes = octaves(nodes, table.nodes),
                          .gpus = octaves(gpus_per_node, table.gpus_per_node),
                          .inside = nodes == 1,
                          .other_kind = table.kind != kind || table.forced != forced};
    const double spread = spread_of(support);
    if (spread >= least) continue;
    least = spread;
    nearest = support;
  }
  return nearest;
}

bool was_shown(const ScaleCostModel& scale, StepPath path) {
  return std::ranges::find(scale.steps, path, &StepCostModel::path) != scale.steps.end();
}

}  // namespace

//   segments  latency + bytes * slope on each stretch of sizes that one regime covers; between the
//             last size of one and the first of the next the logarithms are joined by a line, since
//             no size was measured between the regimes
//   envelope  the minimum of a few lines: a library chooses the best
//   sum       (latency^p + (bytes * slope)^p)^(1/p): a floor that acts like a maximum
//
// Times are never negative and, inside a regime, never fall with the payload.
Seconds size_time(const SizeCostModel& model, double bytes) {
  assert(!model.lines.empty() && "a cost model has a line");
  double largest = 0;
  for (const SizeLine& line : model.lines) largest = std::max(largest, line.to);
  if (bytes > largest && model.lines.back().seconds_per_byte <= 0) {
    return size_time(model, largest) * bytes / largest;
  }
  if (model.form == SizeCostModel::Form::kSegments) return on_segments(model, bytes);
  if (model.form == SizeCostModel::Form::kSum) {
    const SizeLine& line = model.lines.front();
    return std::pow(std::pow(line.latency, model.exponent) +
                        std::pow(line.seconds_per_byte * bytes, model.exponent),
                    1 / model.exponent);
  }
  double least = on_line(model.lines.front(), bytes);
  for (const SizeLine& line : model.lines) least = std::min(least, on_line(line, bytes));
  return least;
}

double size_spread(const std::vector<SizeSpread>& spreads, double bytes) {
  if (spreads.empty()) return kUnknownSpread;
  const auto above = std::find_if(spreads.begin(), spreads.end(),
                                  [&](const SizeSpread& one) { return one.bytes >= bytes; });
  if (above == spreads.begin()) return above->spread;
  if (above == spreads.end()) return spreads.back().spread;
  const SizeSpread& below = *(above - 1);
  const double share = std::log(bytes / below.bytes) / std::log(above->bytes / below.bytes);
  return below.spread + share * (above->spread - below.spread);
}

std::string describe(const SizeCostModel& model) {
  const std::string count = std::to_string(model.lines.size());
  switch (model.form) {
    case SizeCostModel::Form::kSum:
      return "sum with exponent " + std::to_string(std::lround(model.exponent));
    case SizeCostModel::Form::kEnvelope:
      return "envelope of " + count + " lines";
    case SizeCostModel::Form::kSegments:
      break;
  }
  return model.lines.size() == 1 ? "one line" : count + " segments";
}

std::optional<double> tree_factor(const MeasuredCostModel& model) {
  bool network = false;
  for (const TableCostModel& table : model.tables) {
    network = network || (table.nodes > 1 && table.forced != ForcedAlgorithm::kTree);
  }
  if (!model.scale || !network) return std::nullopt;
  std::vector<double> factors;
  for (const TableCostModel& table : model.tables) {
    if (table.forced != ForcedAlgorithm::kTree || table.nodes <= 2) continue;
    const BytesPerSecond rate =
        model.scale->rates.back().bandwidth * rate_share(*model.scale, table.gpus_per_node);
    constexpr int kSizes = 64;
    for (int i = 0; i <= kSizes; ++i) {
      const double bytes = table.min_bytes + (table.max_bytes - table.min_bytes) * i / kSizes;
      factors.push_back(size_time(table.cost_model, bytes) * rate / bytes);
    }
  }
  if (factors.empty()) return std::nullopt;
  return median(std::move(factors));
}

double spread_of(const Support& support) {
  constexpr double kMin = 0.004;  // closer repetitions do not make a measurement more exact
  constexpr double kSize = 0.1;
  constexpr double kNodes = 0.06;
  const double gpus = support.inside ? 0.15 : 0.06;
  constexpr double kPaths = 1;
  constexpr double kUnshown = 0.7;
  constexpr double kOtherKind = 0.07;
  const auto square = [](double part) { return part * part; };
  double sum = square(kMin) + square(support.table) + square(kSize * support.sizes) +
               square(kNodes * support.nodes) + square(gpus * support.gpus) +
               square(kPaths * support.paths) + square(kUnshown) * support.unshown;
  if (support.other_kind) sum += square(kOtherKind);
  return std::sqrt(sum);
}

double rate_share(const ScaleCostModel& scale, int gpus_per_node) {
  const auto& rates = scale.rates;
  const auto above = std::find_if(rates.begin(), rates.end(), [&](const NodeRate& rate) {
    return rate.gpus_per_node >= gpus_per_node;
  });
  const BytesPerSecond own = rates.back().bandwidth;
  if (above != rates.end() && above->gpus_per_node == gpus_per_node) return above->bandwidth / own;
  if (above != rates.begin() && above != rates.end()) {
    const NodeRate& low = *(above - 1);
    const double share = static_cast<double>(gpus_per_node - low.gpus_per_node) /
                         (above->gpus_per_node - low.gpus_per_node);
    return (low.bandwidth + share * (above->bandwidth - low.bandwidth)) / own;
  }
  // A node with at most the rate of one 100 Gbit/s port has one port; others have one per GPU, up
  // to the rate of the ring inside the node.
  constexpr BytesPerSecond kOnePort = 12.5e9;
  const NodeRate& nearest = above == rates.begin() ? rates.front() : rates.back();
  if (nearest.bandwidth <= kOnePort) return nearest.bandwidth / own;
  double rate = nearest.bandwidth * gpus_per_node / nearest.gpus_per_node;
  if (scale.inside > 0 && gpus_per_node > nearest.gpus_per_node) {
    rate = std::min(rate, std::max(scale.inside, nearest.bandwidth));
  }
  return rate / own;
}

StepCostModel step_cost_model_of(const ScaleCostModel& scale, StepPath path) {
  const auto known = std::ranges::find(scale.steps, path, &StepCostModel::path);
  return known != scale.steps.end() ? *known : prior_cost_model(path, scale.prior);
}

std::optional<CostModelAnswer> cost_model_time(const MeasuredCostModel& model,
                                               collective::CollectiveKind kind, double bytes,
                                               int nodes, int gpus_per_node,
                                               ForcedAlgorithm forced) {
  if (nodes * gpus_per_node < 2 || bytes <= 0) return std::nullopt;
  constexpr double kSlack = 2;
  double smallest = 0;
  double largest = 0;
  bool tree_shown = false;
  for (const TableCostModel& table : model.tables) {
    tree_shown = tree_shown || (table.forced == ForcedAlgorithm::kTree && table.nodes > 1);
    if (table.kind != kind || table.forced != forced) continue;
    if (table.nodes == nodes && table.gpus_per_node == gpus_per_node) {
      const bool covered = bytes >= table.min_bytes / kSlack && bytes <= table.max_bytes * kSlack;
      const Support support{
          .table = std::hypot(size_spread(table.spreads, bytes), std::log1p(table.slow)),
          .sizes = beyond(table, bytes)};
      return CostModelAnswer{size_time(table.cost_model, bytes),
                             covered && table.clean && table.slow == 0, spread_of(support)};
    }
    if ((table.nodes == 1) != (nodes == 1)) continue;
    smallest = smallest == 0 ? table.min_bytes : std::min(smallest, table.min_bytes);
    largest = std::max(largest, table.max_bytes);
  }
  const bool tree = forced == ForcedAlgorithm::kTree;
  if (!ring_like(kind) || (tree && kind != collective::CollectiveKind::kAllReduce)) {
    return std::nullopt;
  }
  const bool covered = bytes >= smallest / kSlack && bytes <= largest * kSlack;
  Support support = support_of(model, kind, bytes, nodes, gpus_per_node, forced);
  if (nodes == 1) {
    const auto blend = time_in_node(model, kind, bytes, gpus_per_node, forced);
    if (!blend) return std::nullopt;
    support.paths = blend->second;
    return CostModelAnswer{blend->first,
                           covered && counts_in_range(model, kind, nodes, gpus_per_node, forced),
                           spread_of(support)};
  }
  if (!model.scale) return std::nullopt;
  const ScaleCostModel& scale = *model.scale;
  const double share = rate_share(scale, gpus_per_node);
  const PathChoice choice(scale.graph, kind, nodes, gpus_per_node, forced);
  const StepPath path = choice(bytes);
  const StepCostModel step = step_cost_model_of(scale, path);
  if (tree && model.tree && !tree_shown && nodes > 2) {
    // The factor holds the whole cost of a large payload; a small one costs at least its hops.
    const Seconds hops = step_time(step, kind, 1, nodes, gpus_per_node, share);
    const BytesPerSecond rate = scale.rates.back().bandwidth * share;
    support.unshown = 1;
    return CostModelAnswer{.time = std::max(hops, model.tree->factor * bytes / rate),
                           .spread = spread_of(support)};
  }
  const auto log_time = [&](StepPath one) {
    const Seconds plain =
        step_time(step_cost_model_of(scale, one), kind, bytes, nodes, gpus_per_node, share);
    return std::log(plain) + correction(model, one, kind, bytes, nodes, gpus_per_node);
  };
  Opinions paths;
  for (const auto& [one, likely] : choice.shares(bytes)) {
    paths.add(likely, log_time(one));
    if (!was_shown(scale, one)) support.unshown += likely;
  }
  support.paths = std::sqrt(paths.variance());
  return CostModelAnswer{
      .time = bounded(model, kind, bytes, nodes, gpus_per_node, forced, std::exp(log_time(path))),
      .in_range = covered && was_shown(scale, path) &&
                  counts_in_range(model, kind, nodes, gpus_per_node, forced),
      .spread = spread_of(support)};
}

}  // namespace syncline::cost
