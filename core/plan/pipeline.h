// A job that is also cut by tensor, context, pipeline or experts (core/job/parallel.h): which
// ranks sum a gradient, and the step of a pipeline. Each stage has its own operations.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/communication.h"

namespace syncline::plan {

// A stage's work on one micro-batch and one of its model chunks. Zero bubble cuts the backward pass
// in two: what the stage before waits for, and the weights' gradients.
struct Pass {
  enum class Kind { kForward, kBackward, kWeights } kind = Kind::kForward;
  int chunk = 0;
  int micro_batch = 0;
  bool operator==(const Pass&) const = default;
};

// One step of one stage, in order.
std::vector<Pass> passes_of(const Parallel& parallel, int micro_batches, int stage);

// A strategy's groups are so many neighbours among those that sum a dense gradient. An expert's
// gradient is summed by fewer, further apart: those of a group are the ones among the same
// neighbours, as torchtitan's and Megatron's meshes have it. Why they do not come out even: which
// of the strategy's keys, and what is possible instead; nothing where they do, or where no expert
// is summed apart.
struct UnevenGroups {
  std::string key;
  std::string why;
};
std::optional<UnevenGroups> uneven_groups(const Strategy& strategy, const Workload& workload);

// Returns the strategy for experts' gradients alone; `ranks` sum a dense one. Requires even groups.
Strategy for_experts(const Strategy& strategy, const Parallel& parallel, int ranks);

// Of a whole job's step, like step_plan. Requires parallel.whole_job().
Plan whole_plan(const Workload& workload, const Cluster& cluster, const Strategy& strategy,
                const TrainingPoint& point);

// A lower bound of a step, whatever is sent. For each stage it is the larger of two sums: its
// passes with those before its first and after its last, or its passes and its update.
Seconds least_step(const Workload& workload);

}  // namespace syncline::plan
