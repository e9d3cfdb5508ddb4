#include "core/metrics/bound.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/index.h"
#include "core/metrics/phases.h"
#include "core/plan/forward_pass.h"

namespace syncline::measure {
namespace {

// The model's own work in one period, with the overhead of data-parallel running.
struct ModelWork {
  Seconds all = 0;  // including copies and the host's delays, which every fusion has
  Seconds forward = 0;
  Seconds overhead = 0;   // of data-parallel running, part of `all` and `forward`
  Seconds tail = 0;       // work that can only follow the last exchange
  bool averages = false;  // LocalSGD: parameters are exchanged after all of it
  bool crosses = false;   // the next step's forward pass waits layer by layer
  bool awaits = false;    // or as a whole: the host's time before it is off the path
  plan::OpId last_update = -1;
  plan::OpId last_forward = -1;
};

// Returns the delay of the computation by an operation that is not the model's.
Seconds held_up(const plan::Plan& plan, const plan::Op& op) {
  if (!plan.computes(op.stream)) return 0;
  // Another fusion copies averaged parameters in other parts.
  const auto* busy = std::get_if<plan::Busy>(&op.work);
  if (busy == nullptr) return 0;
  if (busy->reason == plan::Busy::Reason::kHost) return busy->seconds;
  if (busy->bucket >= 0 && plan.buckets[index(busy->bucket)].averaged) return 0;
  const bool copies =
      busy->reason == plan::Busy::Reason::kCopyIn || busy->reason == plan::Busy::Reason::kCopyOut;
  return copies ? busy->seconds : 0;
}

ModelWork model_work(const plan::Plan& plan) {
  ModelWork work;
  int updates = 0;
  work.awaits = plan::crosses_steps(plan);
  work.overhead = plan::time_before_forward(plan);
  work.forward = work.overhead;
  for (const auto& op : plan.ops) {
    work.all += held_up(plan, op);
    const auto* compute = std::get_if<plan::Compute>(&op.work);
    if (compute == nullptr) continue;
    work.all += compute->seconds;
    const auto id = static_cast<plan::OpId>(&op - plan.ops.data());
    if (compute->phase == plan::Phase::kForward) {
      work.forward += compute->seconds;
      work.last_forward = id;
      // Even one bucket may have cut it by layers: more would be awaited one by one.
      work.crosses |= work.awaits && compute->last >= 0;
    }
    if (compute->phase == plan::Phase::kUpdate) {
      work.tail += compute->seconds;
      work.last_update = id;
      ++updates;
    }
    work.averages |= compute->phase == plan::Phase::kAverage;
  }
  // Updates by bucket may be hidden by later exchanges if there are more of these; a single one
  // cannot.
  if (plan.updates_by_bucket || updates > 1) work.tail = 0;
  return work;
}

// One bucket's demand on the network.
struct Demand {
  Seconds first_latency = 0;                             // before its first byte
  Seconds latency = 0;                                   // of all its collectives
  std::vector<std::pair<std::size_t, double>> payloads;  // (cost, bytes)
  Seconds transfer = 0;                                  // on its busiest links, without others
};

// Returns all-gathers that a pass of the model awaits in its own step. They bring parameters before
// their gradient, so they are off the path from there to the next step.
std::set<plan::OpId> gathered_for_passes(const plan::Plan& plan) {
  std::set<plan::OpId> gathers;
  for (const auto& op : plan.ops) {
    const auto* compute = std::get_if<plan::Compute>(&op.work);
    const bool passes = compute != nullptr && (compute->phase == plan::Phase::kForward ||
                                               compute->phase == plan::Phase::kBackward);
    if (!passes) continue;
    for (const plan::OpId id : op.after) {
      const auto* collective = std::get_if<collective::Collective>(&plan.ops[index(id)].work);
      if (collective == nullptr) continue;
      if (collective->kind == collective::CollectiveKind::kAllGather) gathers.insert(id);
    }
  }
  return gathers;
}

struct Demands {
  std::vector<const collective::CollectiveCost*> costs;
  std::vector<Demand> buckets;
};

Demands demands_of(const plan::Plan& plan, collective::CostCache& cache) {
  // No fusion brings more than all bytes in one payload.
  double largest = 0;
  for (const auto& op : plan.ops) {
    const auto* collective = std::get_if<collective::Collective>(&op.work);
    if (collective != nullptr) largest += static_cast<double>(collective->bytes());
  }
  Demands demands;
  demands.buckets.resize(plan.buckets.size());
  std::unordered_map<const collective::CollectiveCost*, std::size_t> places;
  const auto ahead = gathered_for_passes(plan);
  for (const auto& op : plan.ops) {
    const auto* collective = std::get_if<collective::Collective>(&op.work);
    const auto id = static_cast<plan::OpId>(&op - plan.ops.data());
    if (collective == nullptr || ahead.contains(id)) continue;
    const collective::CollectiveCost* cost = &cache.cost(*collective);
    const auto [place, fresh] = places.try_emplace(cost, demands.costs.size());
    if (fresh) demands.costs.push_back(cost);

    Demand& demand = demands.buckets[index(collective->bucket)];
    const Seconds overhead = cache.cluster().collective_overhead;
    const auto bytes = static_cast<double>(collective->bytes());
    // The cheapest byte and the cheapest start of any fusion.
    const auto least = cache.least(*collective, static_cast<Bytes>(largest));
    if (demand.payloads.empty()) demand.first_latency = overhead + least.first;
    demand.latency += overhead + least.latency;
    demand.transfer += bytes * least.seconds_per_byte;
    demand.payloads.emplace_back(place->second, bytes * least.scale);
  }
  return demands;
}

// Returns the time that each link works per byte of each cost's payload; equal links are listed
// once.
std::vector<std::vector<double>> link_profiles(
    const std::vector<const collective::CollectiveCost*>& costs) {
  std::vector<std::vector<double>> by_kind;
  for (const auto* cost : costs) by_kind.push_back(link_times(*cost));
  std::set<std::vector<double>> distinct;
  for (const auto& joint : collective::joint_kinds(costs)) {
    std::vector<double> profile(costs.size(), 0.0);
    for (std::size_t p = 0; p < joint.size(); ++p) {
      if (joint[p] >= 0) profile[p] = by_kind[p][index(joint[p])];
    }
    distinct.insert(std::move(profile));
  }
  return {distinct.begin(), distinct.end()};
}

// One gradient's part of its bucket: another fusion might separate them, so link time is shared by
// bytes.
struct Piece {
  Seconds ready = 0;
  std::size_t bucket = 0;
  double share = 0;
};

// Returns when each gradient is ready after its own parameters are needed. That is the step's
// begin, or the forward pass (its layer's, if steps cross) if only that waits for them.
std::vector<Seconds> ready_after_need(const Workload& workload, const ModelWork& work,
                                      double stretch) {
  std::vector<Seconds> ready;
  // The backward passes of earlier micro-batches; work.forward has their forward passes.
  Seconds clock =
      static_cast<double>(workload.micro_batches - 1) * backward_time(workload) * stretch;
  for (const auto& tensor : workload.tensors) ready.push_back(clock += tensor.backward * stretch);
  const Seconds forward = work.awaits ? work.forward - work.overhead : work.forward;
  if (!work.crosses) {
    for (auto& time : ready) time += forward;
    return ready;
  }
  Seconds rest = forward;  // from this layer on
  for (const auto& layer : plan::forward_layers(workload)) {
    for (int t = layer.first; t <= layer.last; ++t) ready[index(t)] += rest;
    rest -= layer.seconds * stretch;
  }
  return ready;
}

// Returns the buckets exchanged by LocalSGD's local steps or earlier micro-batches: they are over
// before the averaging or the last forward pass.
std::vector<char> local_buckets(const plan::Plan& plan, const ModelWork& work) {
  std::vector<char> local(plan.buckets.size(), 0);
  const auto ahead = gathered_for_passes(plan);
  const plan::OpId end = work.averages ? work.last_update : work.last_forward;
  for (plan::OpId id = 0; id < end; ++id) {
    const auto* collective = std::get_if<collective::Collective>(&plan.ops[index(id)].work);
    if (collective != nullptr && !ahead.contains(id)) local[index(collective->bucket)] = 1;
  }
  return local;
}

std::vector<Piece> pieces_of(const plan::Plan& plan, const Workload& workload,
                             const ModelWork& work, double stretch) {
  const std::vector<Seconds> ready = ready_after_need(workload, work, stretch);
  const std::vector<char> local = local_buckets(plan, work);
  std::vector<Piece> pieces;
  for (std::size_t b = 0; b < plan.buckets.size(); ++b) {
    if (local[b] != 0) continue;
    for (const int number : plan.buckets[b].tensors) {
      const std::size_t t = index(number);
      const bool buffer = t >= workload.tensors.size();
      const Tensor& tensor =
          buffer ? workload.buffers[t - workload.tensors.size()] : workload.tensors[t];
      // A bucket may hold only a part of the tensor.
      const auto all = static_cast<double>(plan.buckets[b].elements);
      const double share = std::min(1.0, static_cast<double>(tensor.elements) / all);
      pieces.push_back({work.averages ? work.all : ready[t], b, share});
    }
  }
  std::ranges::stable_sort(pieces, std::ranges::greater(), &Piece::ready);
  return pieces;
}

// Returns the time of a pipeline's stage that computes most.
Seconds busiest_stage(const plan::Plan& plan) {
  std::vector<Seconds> all(index(plan.roles), 0);
  for (const auto& op : plan.ops) {
    const auto* compute = std::get_if<plan::Compute>(&op.work);
    all[index(plan.role_of(op.stream))] +=
        held_up(plan, op) + (compute == nullptr ? 0 : compute->seconds);
  }
  return *std::ranges::max_element(all);
}

}  // namespace

std::vector<double> link_times(const collective::CollectiveCost& cost, double share) {
  std::vector<double> times(cost.footprint->link_kinds(), 0.0);
  for (const auto& stage : cost.stages) {
    for (const auto& [kind, seconds] : stage.links) times[index(kind)] += seconds * share;
  }
  return times;
}

Seconds lower_bound_of(const Job& job, const Strategy& strategy, Seconds step_time,
                       collective::CostCache& cache) {
  int phases = 0;
  Seconds last = 0;
  const Seconds mean = mean_over_phases(job, strategy, {}, [&](TrainingStretch& phase) {
    ++phases;
    return last = lower_bound(phase.plan, phase.workload, cache);
  });
  return std::min(phases == 1 ? last : mean, step_time);  // one phase: to the last bit
}

Seconds lower_bound(const plan::Plan& plan, const Workload& workload,
                    collective::CostCache& cache) {
  if (plan.roles > 1) return busiest_stage(plan) / plan.steps;
  const ModelWork work = model_work(plan);
  if (plan.ranks == 1 || plan.buckets.empty()) return work.all / plan.steps;

  const Demands demands = demands_of(plan, cache);
  const auto links = link_profiles(demands.costs);
  Seconds bound = work.averages ? work.all : 0;
  // From the latest gradient back: the load of links from its readiness on.
  std::vector<Seconds> busy(links.size(), 0.0);  // of each link, by that load
  Seconds first_latency = 0;
  bool first = true;
  for (const auto& piece : pieces_of(plan, workload, work, plan.compute_slowdown)) {
    const Demand& demand = demands.buckets[piece.bucket];
    if (demand.payloads.empty()) continue;
    first_latency = first ? demand.first_latency : std::min(first_latency, demand.first_latency);
    first = false;
    Seconds busiest = 0;
    for (std::size_t l = 0; l < links.size(); ++l) {
      for (const auto& [cost, bytes] : demand.payloads) {
        busy[l] += bytes * piece.share * links[l][cost];
      }
      busiest = std::max(busiest, busy[l]);
    }
    bound = std::max({bound, piece.ready + demand.latency + demand.transfer * piece.share,
                      piece.ready + first_latency + busiest});
  }
  const bool follows = !work.averages && !work.crosses;  // the update is last
  return std::max(work.all, follows ? bound + work.tail : bound) / plan.steps;
}

}  // namespace syncline::measure
