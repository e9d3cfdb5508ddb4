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

std::size_t index(collective::NcclProtocol protocol) { return static_cast<std::size_t>(protocol); }

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
  const double bandwidth = model.bandwidth * share;
  if (model.path.tree) {
    const double hops = nodes > 1 ? std::ilogb(nodes) : 1;
    const double times = nodes <= 2 ? 1 : 2;
    return model.base + 2 * (hops * model.latency + (gpus_per_node - 1) * model.chain) +
           hops * model.fill * std::pow(bytes / kFillBytes, kFillPower) + times * bytes / bandwidth;
  }
  const double steps = ring_steps(kind, nodes, gpus_per_node);
  const double between_nodes = ring_steps(kind, nodes);
  const double ranks = static_cast<double>(nodes) * gpus_per_node;
  const double waiting =
      model.latency * (between_nodes + model.intra_share * (steps - between_nodes));
  const double moving = steps * bytes / ranks / bandwidth;
  if (model.exponent == 1) return model.base + waiting + moving;
  return model.base + std::pow(std::pow(waiting, model.exponent) + std::pow(moving, model.exponent),
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
    const auto residuals = [&](const Parameters& p, double* out) {
      const StepCostModel model = cost_model_of(path, p, exponent, chain);
      for (const PathRow& row : rows) {
        const double time =
            step_time(model, row.kind, row.bytes, row.nodes, row.gpus_per_node, row.share);
        *out++ = damp_error(std::log(time / row.time) / kNoise);
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
