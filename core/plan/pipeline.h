// A model-parallel job by tensor, context, pipeline or experts (core/job/parallel.h): the ranks
// that sum a gradient, and the step of a pipeline. Each stage has its own operations.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/communication.h"

namespace syncline::plan {

// A stage's work on one micro-batch and one of its model chunks. Zero bubble splits the backward
// pass in two: the part that the previous stage waits for, and the weights' gradients.
struct Pass {
  enum class Kind { kForward, kBackward, kWeights } kind = Kind::kForward;
  int chunk = 0;
  int micro_batch = 0;
  bool operator==(const Pass&) const = default;
};

// Returns the passes of one stage in a step, in order.
std::vector<Pass> passes_of(const Parallel& parallel, int micro_batches, int stage);

// The strategy's key that makes groups of experts uneven, and the possible values. A group of a
// strategy is a number of neighbours among the ranks that sum a dense gradient. Only some of these
// neighbours sum a certain expert's gradient, as in torchtitan's and Megatron's meshes. Groups are
// even if that number is the same for each expert and group.
struct UnevenGroups {
  std::string key;
  std::string why;
};
// Returns the key at fault; nullopt: groups are even, or no expert is summed separately.
std::optional<UnevenGroups> uneven_groups(const Strategy& strategy, const Workload& workload);

// Returns the strategy for experts' gradients only; `ranks` sum a dense one. Requires even groups.
Strategy for_experts(const Strategy& strategy, const Parallel& parallel, int ranks);

// Returns the workload without tensors, buffers and operators, which are slow to copy.
Workload without_lists(const Workload& whole);

// Plans the step of a whole job, like step_plan. Requires parallel.whole_job().
Plan whole_plan(const Workload& workload, const Cluster& cluster, const Strategy& strategy,
                const TrainingPoint& point);

// Returns a lower bound of a step for any communication: the maximum over the stages of two sums.
// One has the stage's passes, the other stages' passes before its first and those after its last.
// The other has the stage's passes and its update.
Seconds least_step(const Workload& workload);

}  // namespace syncline::plan
