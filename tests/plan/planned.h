// Small workloads, strategies for them, and what stands in their plans.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "core/plan/planner.h"
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

template <typename Kind>
std::vector<const Op*> ops_of(const Plan& plan) {
  std::vector<const Op*> list;
  for (const auto& op : plan.ops) {
    if (std::holds_alternative<Kind>(op.work)) list.push_back(&op);
  }
  return list;
}

inline std::vector<const Op*> ops_of(const Plan& plan, Busy::Reason reason) {
  std::vector<const Op*> list;
  for (const auto& op : plan.ops) {
    if (reason_of(op.work) == reason) list.push_back(&op);
  }
  return list;
}

inline std::vector<collective::Collective> collectives_of(const Plan& plan, int bucket) {
  std::vector<collective::Collective> list;
  for (const auto* op : ops_of<collective::Collective>(plan)) {
    const auto& collective = std::get<collective::Collective>(op->work);
    if (collective.bucket == bucket) list.push_back(collective);
  }
  return list;
}

inline const Compute& compute_of(const Op& op) { return std::get<Compute>(op.work); }
inline const collective::Collective& collective_in(const Op& op) {
  return std::get<collective::Collective>(op.work);
}

// Operations of one kind of collective, by bucket; -1: it has none.
inline std::vector<OpId> sent(const Plan& plan, collective::CollectiveKind kind) {
  std::vector<OpId> ids(plan.buckets.size(), -1);
  for (const auto* op : ops_of<collective::Collective>(plan)) {
    if (collective_in(*op).kind != kind) continue;
    ids[static_cast<std::size_t>(collective_in(*op).bucket)] =
        static_cast<OpId>(op - plan.ops.data());
  }
  return ids;
}

inline Strategy strategy_with(Fusion::Rule rule) {
  Strategy strategy;
  strategy.name = "test";
  strategy.fusion.rule = rule;
  return strategy;
}

inline Strategy dgc_strategy(std::int64_t min_elements) {
  Strategy strategy;
  strategy.compression.codec = "dgc";
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

inline Seconds seconds_of_phase(const Plan& plan, Phase phase) {
  Seconds sum = 0;
  for (const auto* op : ops_of<Compute>(plan)) {
    if (compute_of(*op).phase == phase) sum += compute_of(*op).seconds;
  }
  return sum;
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
