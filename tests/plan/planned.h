// Small workloads, strategies for them, and what stands in their plans.
#pragma once

#include <functional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "core/base/index.h"
#include "core/communication.h"
#include "core/executor.h"
#include "core/plan.h"
#include "tests/support/small_plans.h"

namespace syncline::plan {

// Five gradients of 100 elements, 1 ms of backward each.
inline Workload five() {
  Workload workload;
  workload.forward = 0.010;
  workload.update = 0.002;
  for (int i = 0; i < 5; ++i) {
    workload.tensors.push_back(test::tensor_of("layer" + std::to_string(i) + ".weight", {100}));
    workload.tensors.back().backward = 0.001;
  }
  workload.buffers = {test::tensor_of("mean", {10}), test::tensor_of("variance", {10})};
  return workload;
}

// Of each thing one part, in order.
template <typename List, typename Part>
auto each(const List& list, Part part) {
  std::vector<std::decay_t<decltype(std::invoke(part, *list.begin()))>> parts;
  for (const auto& one : list) parts.push_back(std::invoke(part, one));
  return parts;
}

template <typename Wanted>
std::vector<const Op*> ops_where(const Plan& plan, Wanted wanted) {
  std::vector<const Op*> list;
  for (const auto& op : plan.ops) {
    if (wanted(op.work)) list.push_back(&op);
  }
  return list;
}

template <typename Kind>
std::vector<const Op*> ops_of(const Plan& plan) {
  return ops_where(plan, [](const Work& work) { return std::holds_alternative<Kind>(work); });
}

inline std::vector<const Op*> ops_of(const Plan& plan, Busy::Reason reason) {
  return ops_where(plan, [&](const Work& work) { return reason_of(work) == reason; });
}

inline std::vector<const Op*> ops_of(const Plan& plan, Phase phase) {
  return ops_where(plan, [&](const Work& work) {
    const auto* compute = std::get_if<Compute>(&work);
    return compute != nullptr && compute->phase == phase;
  });
}

inline const Compute& compute_of(const Op& op) { return std::get<Compute>(op.work); }
inline const collective::Collective& collective_in(const Op& op) {
  return std::get<collective::Collective>(op.work);
}
inline const collective::Collective& collective_at(const Plan& plan, OpId id) {
  return collective_in(plan.ops[index(id)]);
}

inline std::vector<collective::Collective> collectives_of(const Plan& plan) {
  return each(ops_of<collective::Collective>(plan),
              [](const Op* op) { return collective_in(*op); });
}
inline std::vector<collective::Collective> collectives_of(const Plan& plan, int bucket) {
  auto list = collectives_of(plan);
  std::erase_if(list, [&](const auto& collective) { return collective.bucket != bucket; });
  return list;
}

// Operations of one kind of collective, by bucket; -1: it has none.
inline std::vector<OpId> sent(const Plan& plan, collective::CollectiveKind kind) {
  std::vector<OpId> ids(plan.buckets.size(), -1);
  for (const auto* op : ops_of<collective::Collective>(plan)) {
    if (collective_in(*op).kind != kind) continue;
    ids[index(collective_in(*op).bucket)] = static_cast<OpId>(op - plan.ops.data());
  }
  return ids;
}

inline Strategy strategy_with(Fusion::Rule rule) {
  Strategy strategy;
  strategy.name = "test";
  strategy.fusion.rule = rule;
  return strategy;
}

inline Strategy compressing(const char* codec, Fusion::Rule rule = Fusion::Rule::kNone) {
  Strategy strategy = strategy_with(rule);
  strategy.compression.codec = codec;
  return strategy;
}

inline Strategy dgc_strategy(std::int64_t min_elements) {
  Strategy strategy = compressing("dgc");
  strategy.compression.min_elements = min_elements;
  return strategy;
}

inline Strategy local_strategy(std::int64_t period, std::int64_t begin_step = 1) {
  Strategy strategy;
  strategy.local_sgd.enabled = true;
  strategy.local_sgd.period = period;
  strategy.local_sgd.begin_step = begin_step;
  return strategy;
}

// Blocks of the hierarchy.
inline Strategy in_blocks(Hierarchy::Form form, int group_size) {
  Strategy strategy;
  strategy.hierarchy.form = form;
  strategy.hierarchy.group_size = group_size;
  return strategy;
}

inline Strategy exchanging(Strategy::Exchange exchange) {
  Strategy strategy;
  strategy.exchange = exchange;
  return strategy;
}

// Parameters are gathered for the forward pass, and again for the backward pass.
inline Strategy regathering() {
  Strategy strategy = exchanging(Strategy::Exchange::kSharded);
  strategy.cross_step = strategy.regather = true;
  return strategy;
}

inline Seconds seconds_of_all(const std::vector<const Op*>& ops) {
  Seconds sum = 0;
  for (const auto* op : ops) sum += seconds_of(op->work);
  return sum;
}
inline Seconds seconds_of_phase(const Plan& plan, Phase phase) {
  return seconds_of_all(ops_of(plan, phase));
}

// What the last of so many periods takes.
inline Seconds last_period(run::Executor& executor, const Plan& plan, int periods = 3) {
  const auto ends = executor.run(plan, {}, periods).timeline.period_ends;
  return ends.at(ends.size() - 1) - ends.at(ends.size() - 2);
}

inline constexpr Seconds kPartForward = 1e-3;
inline constexpr Seconds kPartBackward = 2e-3;

// Parts with one layer each; a layer has two gradients of `elements`.
inline Workload job(const Parallel& parallel, int micro_batches, std::int64_t elements = 1000) {
  Workload workload;
  workload.parallel = parallel;
  workload.micro_batches = micro_batches;
  for (int part = parallel.parts(); part-- > 0;) {
    for (const char* name : {".b", ".a"}) {
      Tensor tensor = test::tensor_of("layer." + std::to_string(part) + name, {elements});
      tensor.part = part;
      tensor.forward = kPartForward / 2;
      tensor.backward = kPartBackward / 2;
      workload.tensors.push_back(tensor);
      workload.forward += tensor.forward;
    }
  }
  return workload;
}

inline Parallel pipeline(int stages, Schedule schedule, int chunks = 1) {
  Parallel parallel;
  parallel.pipeline = stages;
  parallel.schedule = schedule;
  parallel.virtual_stages = chunks;
  return parallel;
}

}  // namespace syncline::plan
