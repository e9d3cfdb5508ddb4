//   ring   T = base + [ (latency * (crossing + intra_share * other steps))^p
//                       + (steps * bytes / ranks / bandwidth)^p ]^(1/p)
//   tree   T = base + 2 * (hops * latency + (GPUs per node - 1) * chain)
//                   + hops * fill * (bytes / 1 MiB)^0.42 + f * bytes / bandwidth,
//          hops = floor(log2(nodes)), f = 1 at 2 nodes, else 2
//
// For a ring the regimes belong to the message of a step, bytes / ranks, so a cost model measured
// at one count holds at others. p = 1 adds, 4 is nearly a maximum (a floor per step); the data
// choose. Bandwidth is a node's in one direction.
#include "core/cost/step_cost_model.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <limits>
#include <utility>

#include "core/cost/least_squares.h"

namespace syncline::cost {
namespace {

constexpr double kFillPower = 0.42;  // fitted by many: a pipeline's chunks grow with the payload
constexpr double kFillBytes = 1 << 20;
// Rows repeat to some per cent at best; larger errors get ever less weight.
constexpr double kNoise = 0.08;

using Parameters = std::array<double, 4>;  // logarithms: base, latency, bandwidth, share or fill

// Usual values of a path on the networks measured at several counts of nodes, each fitted to all of
// its tables (Alps, Polaris on TCP and on libfabric). Predicting one of them from a single count,
// the other networks' values are nearer than NCCL's constants.
struct Usual {
  double latency = 1;      // in units of NCCL's constant and of the fabric's scale
  double efficiency = 1;   // share of the fabric's rate
  double intra_share = 0;  // rings
  Seconds fill = 0;        // trees
};

// LL sends 4 bytes of flag with 4 of data, LL128 8 with 120; a tree of LL loses more.
const Usual& usual_of(StepPath path) {
  using UsualByProtocol = std::array<Usual, 3>;
  static constexpr UsualByProtocol kRing = {{{1, .5, .45}, {1.5, .92, .5}, {1, 1, .35}}};
  static constexpr UsualByProtocol kTree = {{{.7, .25, 0, 100 * kMicrosecond},
                                             {1, .9, 0, 100 * kMicrosecond},
                                             {1, .95, 0, 20 * kMicrosecond}}};
  return (path.tree ? kTree : kRing)[static_cast<std::size_t>(path.protocol)];
}

StepCostModel cost_model_of(StepPath path, const Parameters& p, double exponent, Seconds chain) {
  StepCostModel model{path, std::exp(p[0]), std::exp(p[1]), std::exp(p[2]), 0, 0, exponent, chain};
  (path.tree ? model.fill : model.intra_share) = std::exp(p[3]);
  if (!path.tree) model.intra_share = std::min(model.intra_share, 1.0);
  return model;
}

Parameters parameters_of(const StepCostModel& model) {
  return {std::log(model.base), std::log(model.latency), std::log(model.bandwidth),
          std::log(model.path.tree ? model.fill : model.intra_share)};
}

Parameters spreads(StepPath path, const StepPrior& prior) {
  // Simple reaches the network's rate; LL and LL128 a varying share of it.
  const double rate = path.protocol == collective::NcclProtocol::kSimple  ? 0.2
                      : path.protocol == collective::NcclProtocol::kLl128 ? 0.3
                                                                          : 0.7;
  return {0.5, prior.latency_spread, rate, path.tree ? 1.0 : 0.7};
}

// Microseconds by protocol LL, LL128, Simple, as in NCCL 2.28.9 (src/graph/tuning.cc).
using PerProtocol = std::array<double, 3>;
constexpr PerProtocol kTreeBase = {6.8, 14.0, 8.4};
constexpr PerProtocol kRingBase = {6.6, 14.0, 8.4};
constexpr PerProtocol kTreeNvlink = {.6, 1.25, 4.0};
constexpr PerProtocol kRingNvlink = {.6, 1.9, 3.4};
constexpr PerProtocol kTreeNet = {5.0, 8.5, 14.0};
constexpr PerProtocol kRingNet = {2.7, 4.0, 14.0};

// A row as its path's formula sees it.
struct Shape {
  double share = 1;    // of the bandwidth
  double carried = 0;  // bytes that pass a node's port
  double between = 0;  // ring: steps between nodes
  double inside = 0;   // ring: other steps. Tree: those to a node's last GPU
  double hops = 0;     // tree
  double filled = 0;   // tree: filling of its pipeline, over that for 1 MiB
};

Shape shape_of(StepPath path, const PathRow& row) {
  Shape shape;
  shape.share = row.share;
  if (path.tree) {
    shape.carried = (row.nodes <= 2 ? 1 : 2) * row.bytes;
    shape.inside = row.gpus_per_node - 1;
    shape.hops = row.nodes > 1 ? std::ilogb(row.nodes) : 1;
    shape.filled = std::pow(row.bytes / kFillBytes, kFillPower);
    return shape;
  }
  const double steps = ring_steps(row.kind, row.nodes, row.gpus_per_node);
  shape.carried = steps * row.bytes / (static_cast<double>(row.nodes) * row.gpus_per_node);
  shape.between = ring_steps(row.kind, row.nodes);
  shape.inside = steps - shape.between;
  return shape;
}

// Returns the time of a ring's steps without bytes.
Seconds waiting_of(const StepCostModel& model, const Shape& row) {
  return model.latency * (row.between + model.intra_share * row.inside);
}

Seconds moving_of(const StepCostModel& model, const Shape& row) {
  return row.carried / (model.bandwidth * row.share);
}

// Returns the time by a tree, or by a ring of exponent 1.
Seconds sum_of_parts(const StepCostModel& model, const Shape& row) {
  if (!model.path.tree) return model.base + waiting_of(model, row) + moving_of(model, row);
  return model.base + 2 * (row.hops * model.latency + row.inside * model.chain) +
         row.hops * model.fill * row.filled + moving_of(model, row);
}

// Numbers by row for the last two sets of parameters that they depend on.
class LastTwo {
 public:
  // Returns the numbers for `key`; `fill` computes them unless they are stored.
  template <typename Fill>
  const std::vector<double>& at(const std::array<double, 3>& key, const Fill& fill) {
    if (first_.first != key) std::swap(first_, second_);
    if (first_.first != key) {
      first_.first = key;
      fill(first_.second);
    }
    return first_.second;
  }

 private:
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();  // equals no key
  std::pair<std::array<double, 3>, std::vector<double>> first_{{kNone}, {}}, second_{{kNone}, {}};
};

// Times of rows on one path with one exponent. A fit moves one parameter at a time, so powers that
// it leaves alone are stored.
class RowTimes {
 public:
  RowTimes(StepPath path, const std::vector<PathRow>& rows) {
    for (const PathRow& row : rows) rows_.push_back(shape_of(path, row));
  }

  // Returns the same as step_time() for each row, until the next call.
  const std::vector<Seconds>& of(const StepCostModel& model) {
    times_.resize(rows_.size());
    const bool rooted = !model.path.tree && model.exponent != 1;
    const std::vector<double>* roots = rooted ? &roots_of(model) : nullptr;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      times_[i] = rooted ? model.base + (*roots)[i] : sum_of_parts(model, rows_[i]);
    }
    return times_;
  }

 private:
  const std::vector<double>& roots_of(const StepCostModel& model) {
    const auto fill = [&](const auto& value_of) {
      return [&](std::vector<double>& list) {
        list.clear();
        for (std::size_t i = 0; i < rows_.size(); ++i) list.push_back(value_of(i, list));
      };
    };
    const std::vector<double>& waited =
        waited_.at({model.latency, model.intra_share}, fill([&](std::size_t i, const auto& list) {
                     const Seconds waiting = waiting_of(model, rows_[i]);
                     // Rows of one table wait alike.
                     const bool alike = i > 0 && waiting == waiting_of(model, rows_[i - 1]);
                     return alike ? list.back() : std::pow(waiting, model.exponent);
                   }));
    const std::vector<double>& moved =
        moved_.at({model.bandwidth}, fill([&](std::size_t i, const auto&) {
                    return std::pow(moving_of(model, rows_[i]), model.exponent);
                  }));
    return roots_.at({model.latency, model.intra_share, model.bandwidth},
                     fill([&](std::size_t i, const auto&) {
                       return std::pow(waited[i] + moved[i], 1 / model.exponent);
                     }));
  }

  std::vector<Shape> rows_;
  LastTwo waited_, moved_, roots_;
  std::vector<Seconds> times_;
};

std::size_t index(collective::NcclProtocol protocol) { return static_cast<std::size_t>(protocol); }

// Returns NCCL's topology with the guessed graphs.
collective::NcclTopology topology_of(const GraphGuess& guess, int nodes, int gpus_per_node) {
  collective::NcclTopology topology;
  topology.nodes = nodes;
  topology.ranks = nodes * gpus_per_node;
  // Between nodes the bounds of the GPU generations differ little: Hopper's are used.
  topology.least_capability = topology.most_capability = 90;
  topology.cpu = guess.amd ? NcclHints::Cpu::kAmd : NcclHints::Cpu::kIntel;
  topology.ring = {static_cast<double>(guess.channels),
                   guess.ring_intra,
                   guess.ring_inter,
                   collective::NcclPath::kNvl,
                   guess.ll128 ? collective::NcclPath::kPix : collective::NcclPath::kPhb,
                   collective::NcclPattern::kBalancedTree,
                   true,
                   0};
  topology.tree = topology.ring;
  topology.tree.intra = guess.tree_intra;
  topology.tree.inter = guess.tree_inter;
  if (guess.plain_tree) topology.tree.pattern = collective::NcclPattern::kTree;
  topology.channels = 2 * guess.channels;
  return topology;
}

}  // namespace

Seconds step_time(const StepCostModel& model, collective::CollectiveKind kind, double bytes,
                  int nodes, int gpus_per_node, double share) {
  const Shape row = shape_of(model.path, {kind, bytes, nodes, gpus_per_node, share});
  const Seconds sum = sum_of_parts(model, row);
  if (model.path.tree || model.exponent == 1) return sum;
  return model.base + std::pow(std::pow(waiting_of(model, row), model.exponent) +
                                   std::pow(moving_of(model, row), model.exponent),
                               1 / model.exponent);
}

StepCostModel prior_cost_model(StepPath path, const StepPrior& prior) {
  const Usual& usual = usual_of(path);
  StepCostModel model;
  model.path = path;
  model.base = nccl_base_latency(path);
  model.latency = nccl_step_latency(path, true) * prior.latency_scale * usual.latency;
  model.bandwidth = prior.bandwidth * usual.efficiency;
  if (path.tree) {
    model.fill = usual.fill;
    model.chain = nccl_step_latency(path, false) * prior.inside_scale;
    return model;
  }
  model.intra_share = usual.intra_share;
  if (path.protocol == collective::NcclProtocol::kSimple) model.exponent = 4;
  return model;
}

std::pair<StepCostModel, double> fit_step_cost_model(StepPath path,
                                                     const std::vector<PathRow>& rows,
                                                     const StepPrior& prior) {
  const StepCostModel before = prior_cost_model(path, prior);
  const Parameters centre = parameters_of(before);
  const Seconds chain = before.chain;
  const Parameters spread = spreads(path, prior);
  std::pair<StepCostModel, double> best;
  const bool shaped = !path.tree && path.protocol == collective::NcclProtocol::kSimple;
  for (const double exponent : {1.0, 2.0, 4.0}) {
    if (exponent != 1 && !shaped) break;
    RowTimes times(path, rows);
    const auto residuals = [&](const Parameters& p, double* out) {
      const std::vector<Seconds>& predicted = times.of(cost_model_of(path, p, exponent, chain));
      for (std::size_t i = 0; i < rows.size(); ++i) {
        *out++ = damp_error(std::log(predicted[i] / rows[i].time) / kNoise);
      }
      for (std::size_t i = 0; i < p.size(); ++i) *out++ = (p[i] - centre[i]) / spread[i];
    };
    const auto [found, squares] = least_squares<4>(residuals, rows.size() + 4, centre);
    // A floor per step must improve the fit by this.
    constexpr double kGain = 0.5;
    if (exponent == 1 || squares / 2 < best.second - kGain) {
      best = {cost_model_of(path, found, exponent, chain), squares / 2};
    }
  }
  return best;
}

std::string to_string(StepPath path) {
  return (path.tree ? "tree " : "ring ") + std::string(collective::to_string(path.protocol));
}

std::vector<StepPath> all_step_paths() {
  std::vector<StepPath> paths;
  for (const bool tree : {false, true}) {
    using enum collective::NcclProtocol;
    for (const auto protocol : {kLl, kLl128, kSimple}) paths.push_back({tree, protocol});
  }
  return paths;
}

bool ring_like(collective::CollectiveKind kind) {
  return kind != collective::CollectiveKind::kReduce &&
         kind != collective::CollectiveKind::kBroadcast;
}

double ring_steps(collective::CollectiveKind kind, int nodes, int gpus_per_node) {
  const double times = kind == collective::CollectiveKind::kAllReduce ? 2 : 1;
  return times * (static_cast<double>(nodes) * gpus_per_node - 1);
}

double bus_factor(collective::CollectiveKind kind, int ranks) {
  return ring_steps(kind, ranks) / ranks;
}

Seconds nccl_base_latency(StepPath path) {
  return (path.tree ? kTreeBase : kRingBase)[index(path.protocol)] * kMicrosecond;
}

Seconds nccl_step_latency(StepPath path, bool between_nodes) {
  const PerProtocol& list =
      between_nodes ? (path.tree ? kTreeNet : kRingNet) : (path.tree ? kTreeNvlink : kRingNvlink);
  return list[index(path.protocol)] * kMicrosecond;
}

PathChoice::PathChoice(const GraphGuess& guess, collective::CollectiveKind kind, int nodes,
                       int gpus_per_node, ForcedAlgorithm forced)
    : kind_(kind),
      topology_(topology_of(guess, nodes, gpus_per_node)),
      table_(collective::nccl_table(topology_, kind)) {
  // Measured tables of PAT are too few to distinguish it from the ring.
  using collective::NcclAlgorithm;
  table_[static_cast<std::size_t>(NcclAlgorithm::kPat)] = {};
  assert((forced != ForcedAlgorithm::kTree || kind == collective::CollectiveKind::kAllReduce) &&
         "NCCL has trees for all-reduce only");
  if (forced == ForcedAlgorithm::kNone) return;
  const bool ring = forced == ForcedAlgorithm::kRing;
  table_[static_cast<std::size_t>(ring ? NcclAlgorithm::kTree : NcclAlgorithm::kRing)] = {};
}

StepPath PathChoice::operator()(double bytes) const {
  const collective::NcclPick pick = collective::nccl_choice(topology_, table_, kind_, bytes).pick;
  return {pick.algorithm == collective::NcclAlgorithm::kTree, pick.protocol};
}

std::vector<std::pair<StepPath, double>> PathChoice::shares(double bytes) const {
  constexpr double kSharp = 10;  // a tenth more time makes a path less likely by e
  constexpr double kMinShare = 0.01;
  const Seconds least = collective::nccl_choice(topology_, table_, kind_, bytes).time;
  std::vector<std::pair<StepPath, double>> list;
  double sum = 0;
  for (const StepPath path : all_step_paths()) {
    const collective::NcclPick pick{
        path.tree ? collective::NcclAlgorithm::kTree : collective::NcclAlgorithm::kRing,
        path.protocol};
    const auto time = collective::nccl_time(topology_, table_, kind_, pick, bytes);
    if (!time) continue;
    const double share = std::pow(least / *time, kSharp);
    if (share < kMinShare) continue;
    list.emplace_back(path, share);
    sum += share;
  }
  for (auto& [path, share] : list) share /= sum;
  return list;
}

}  // namespace syncline::cost
