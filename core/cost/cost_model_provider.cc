#include "core/cost/cost_model_provider.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <map>
#include <memory>
#include <tuple>

#include "core/collective/collective.h"

namespace syncline::cost {
namespace {

// Counts the first group's members on the node of its member `first`, from that one on.
int members_beside(const collective::Groups& groups, int first, int gpus_per_node) {
  if (groups.member_step == 0) return 1;
  const int left = gpus_per_node - 1 - groups.rank(0, first) % gpus_per_node;
  return std::min(left / groups.member_step + 1, groups.size - first);
}

// True if the group has a member on the node.
bool touches(const collective::Groups& groups, int group, int node, int gpus_per_node) {
  const int begin = groups.rank(group, 0);
  const int before = std::max(0, node * gpus_per_node - begin);
  const int step = std::max(1, groups.member_step);
  const int member = (before + step - 1) / step;  // first that is not on an earlier node
  return member < groups.size && groups.rank(group, member) / gpus_per_node == node;
}

// Returns the cost model's case: NCCL's choice, or an algorithm that NCCL was forced to in some
// table. Empty: not measured.
std::optional<ForcedAlgorithm> forced_of(const MeasuredCostModel& model,
                                         const collective::Collective& collective) {
  if (collective.nccl) return ForcedAlgorithm::kNone;
  if (collective.algorithm == nullptr) return std::nullopt;
  ForcedAlgorithm forced = ForcedAlgorithm::kNone;
  if (collective.algorithm->name == "ring") forced = ForcedAlgorithm::kRing;
  if (collective.algorithm->name == "double_binary_tree") forced = ForcedAlgorithm::kTree;
  if (forced == ForcedAlgorithm::kNone) return std::nullopt;
  if (forced == ForcedAlgorithm::kTree && model.tree) return forced;
  for (const TableCostModel& table : model.tables) {
    if (table.forced == forced) return forced;
  }
  return std::nullopt;
}

// Returns the most nodes of a table up to `nodes`, or `nodes` if all tables have more.
int nodes_measured(const MeasuredCostModel& model, int nodes) {
  int most = 0;
  for (const TableCostModel& table : model.tables) {
    if (table.nodes > 1 && table.nodes <= nodes) most = std::max(most, table.nodes);
  }
  return most > 0 ? most : nodes;
}

class CostModelOfCurves {
 public:
  CostModelOfCurves(const Cluster& cluster, std::vector<StepCurve> curves)
      : curves_(std::move(curves)) {
    for (const auto& tier : cluster.tiers) {
      units_.push_back(spans_.empty() ? 1 : spans_.back());
      spans_.push_back(tier.span);
    }
    assert(curves_.size() == units_.size() && "a curve a tier");
  }

  std::optional<CollectiveTime> operator()(const collective::Collective& collective) const {
    if (collective.algorithm == nullptr || collective.nccl) return std::nullopt;
    const auto stages =
        collective.algorithm->stages(collective.kind, collective.groups.size, collective.elements);
    const auto sets = collective.algorithm->edges(collective.kind, collective.groups.size);
    Seconds sum = 0;
    Seconds latency = 0;  // of it
    for (const auto& stage : stages) {
      const auto round = round_of(stage, sets, collective);
      if (!round) return std::nullopt;
      sum += round->time * static_cast<double>(stage.repeat);
      latency += round->latency * static_cast<double>(stage.repeat);
    }
    return CollectiveTime{.time = sum, .spread = spread_of(sum > 0 ? latency / sum : 0)};
  }

 private:
  std::size_t crossing(int from, int to) const {
    std::size_t tier = 0;
    while (from / spans_[tier] != to / spans_[tier]) ++tier;
    return tier;
  }

  struct Round {
    Seconds time = 0;
    Seconds latency = 0;  // the smallest messages' part of it
  };

  // Returns the spread. Live steps on curves like these err by 1 % in the median and by 4 % at the
  // 90th percentile (scenarios/measured/live). Small messages take the processes' waking time as
  // much as the network's: a job that is recorded again within the hour differs by kSmall
  // (scenarios/training: messages of 4 KiB in twenty recordings).
  static double spread_of(double latency_share) {
    constexpr double kLarge = 0.03;
    constexpr double kSmall = 0.3;
    return std::hypot(kLarge, kSmall * latency_share);
  }

  // Returns one round; the busiest port of each tier decides, as ports work in parallel.
  std::optional<Round> round_of(const collective::Stage& stage, const collective::EdgeSets& sets,
                                const collective::Collective& collective) const {
    const auto payload = static_cast<double>(collective.bytes());
    std::map<std::tuple<std::size_t, int, bool>, double> ports;  // (tier, unit, outwards) -> bytes
    for (std::size_t s = stage.first; s < stage.last; ++s) {
      for (int group = 0; group < collective.groups.count; ++group) {
        for (const auto& edge : sets[s]) {
          const int from = collective.groups.rank(group, edge.from);
          const int to = collective.groups.rank(group, edge.to);
          const std::size_t outermost = crossing(from, to);
          for (std::size_t tier = 0; tier <= outermost; ++tier) {
            const double bytes = stage.fraction * payload;
            ports[{tier, from / units_[tier], true}] += bytes;
            ports[{tier, to / units_[tier], false}] += bytes;
          }
        }
      }
    }
    std::vector<double> busiest(curves_.size(), 0);
    for (const auto& [port, bytes] : ports) {
      auto& most = busiest[std::get<0>(port)];
      most = std::max(most, bytes);
    }
    Round longest;
    for (std::size_t tier = 0; tier < curves_.size(); ++tier) {
      if (busiest[tier] <= 0) continue;
      const StepCurve& curve = curves_[tier];
      if (curve.empty()) return std::nullopt;
      const Seconds time = step_time(curve, busiest[tier]);
      if (time > longest.time) longest = {time, curve.front().seconds};
    }
    return longest;
  }

  std::vector<int> units_;  // ranks below one port of each tier
  std::vector<int> spans_;
  std::vector<StepCurve> curves_;
};

}  // namespace

GroupShape group_shape(const collective::Groups& given, int gpus_per_node) {
  const collective::Groups groups = collective::ascending(given);
  GroupShape shape;
  shape.gpus_per_node = members_beside(groups, 0, gpus_per_node);
  // If later nodes hold equally many members, two nodes represent all of them.
  const int step = std::max(1, groups.member_step);
  const bool askew = step < gpus_per_node && gpus_per_node % step != 0;
  for (int member = 0; member < groups.size; ++shape.nodes) {
    const int here = members_beside(groups, member, gpus_per_node);
    if (here != shape.gpus_per_node) shape.gpus_per_node = 0;
    member += here;
    if (askew || shape.nodes == 0 || member >= groups.size) continue;
    // From the second node on, each holds the same number as this one.
    const int more = (groups.size - member) / here;
    shape.nodes += more;
    member += more * here;
  }
  const int node = groups.rank(0, 0) / gpus_per_node;
  int beside = 0;
  for (int group = 0; group < groups.count; ++group) {
    // Groups begin in ascending order: later ones lie beyond.
    if (groups.rank(group, 0) / gpus_per_node > node) break;
    beside += touches(groups, group, node, gpus_per_node) ? 1 : 0;
  }
  shape.groups_per_node = std::max(1, beside);
  return shape;
}

CollectiveCostModel collective_cost_model(MeasuredCostModel model, int gpus_per_node,
                                          Seconds overhead) {
  // Costs copy their cluster: all copies share the tables.
  const auto shared = std::make_shared<const MeasuredCostModel>(std::move(model));
  return [shared, gpus_per_node,
          overhead](const collective::Collective& collective) -> std::optional<CollectiveTime> {
    const auto forced = forced_of(*shared, collective);
    if (!forced) return std::nullopt;
    const GroupShape shape = group_shape(collective.groups, gpus_per_node);
    if (shape.gpus_per_node == 0) return std::nullopt;
    auto bytes = static_cast<double>(collective.bytes());
    if (shape.nodes > 1 && shape.groups_per_node > 1 && shared->scale) {
      // Bytes of all groups together, in units of one group's possible rate.
      const int busy = std::min(gpus_per_node, shape.groups_per_node * shape.gpus_per_node);
      bytes *=
          std::max(1.0, shape.groups_per_node * rate_share(*shared->scale, shape.gpus_per_node) /
                            rate_share(*shared->scale, busy));
    }
    const auto answer =
        cost_model_time(*shared, collective.kind, bytes, shape.nodes, shape.gpus_per_node, *forced);
    if (!answer) return std::nullopt;
    return CollectiveTime{
        .time = std::max(0.0, answer->time - overhead),
        .spread = answer->spread,
        .measured = answer->in_range,
        .measured_on =
            shape.nodes > 1 ? nodes_measured(*shared, shape.nodes) * shape.gpus_per_node : 0};
  };
}

Seconds step_time(const StepCurve& curve, double bytes) {
  assert(curve.size() >= 2 && "a curve has two points");
  if (bytes <= curve.front().bytes) return curve.front().seconds;
  const auto above = std::find_if(curve.begin(), curve.end(),
                                  [&](const StepPoint& p) { return p.bytes >= bytes; });
  if (above == curve.end()) {
    return curve.back().seconds + (bytes - curve.back().bytes) / slope_of(curve);
  }
  const StepPoint& right = *above;
  const StepPoint& left = *(above - 1);
  const double share = (bytes - left.bytes) / (right.bytes - left.bytes);
  return left.seconds + share * (right.seconds - left.seconds);
}

BytesPerSecond slope_of(const StepCurve& curve) {
  const StepPoint& last = curve.back();
  const StepPoint& before = curve[curve.size() - 2];
  return (last.bytes - before.bytes) / (last.seconds - before.seconds);
}

CollectiveCostModel step_cost_model(const Cluster& cluster, std::vector<StepCurve> curves) {
  return CostModelOfCurves(cluster, std::move(curves));
}

}  // namespace syncline::cost
