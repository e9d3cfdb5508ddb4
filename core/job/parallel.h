// Model parallelism in addition to data parallelism: tensor, context, expert and pipeline, in
// Megatron's words. World rank = tensor + tensor_size * (context and data, then pipeline), or with
// the pipeline before data. Sizes are in ranks; 1 everywhere is plain data parallelism.
#pragma once

#include <vector>

#include "core/base/units.h"
#include "core/cluster.h"

namespace syncline {

// The order of a stage's micro-batches.
enum class Schedule {
  kGpipe,        // all forward passes, then all backward passes (Huang et al. 2019)
  k1F1B,         // one forward, one backward (PipeDream-flush, Narayanan et al. 2021)
  kInterleaved,  // 1F1B over several model chunks per stage (Megatron, 2021)
  kZeroBubble,   // ZB-H1: the weights' gradients fill bubbles (Qi et al. 2023)
};

struct Parallel {
  int tensor = 1;
  bool sequence = false;  // norms and residuals are split over the tensor group too
  int context = 1;  // ranks that share a sequence; gradients are summed over them as over data
  // Attention exchanges heads (DeepSpeed's Ulysses, Megatron's cp-comm-type a2a) instead of passing
  // keys and values around a ring meanwhile.
  bool context_all_to_all = false;
  int pipeline = 1;
  int virtual_stages = 1;        // model chunks per stage
  int expert = 1;                // ranks that share the experts of a layer
  int expert_tensor = 1;         // ranks that share one expert
  bool pipeline_inside = false;  // order tp-cp-ep-pp-dp: stages are neighbours, replicas far apart
  std::vector<int> layers;       // of each part, in the model's order; empty: even
  Schedule schedule = Schedule::k1F1B;
  bool overlap_sends = false;  // a stage computes while it sends
  // A tensor group's gathers and reduce-scatters travel in one part per rank, during the products
  // that need or make them (Megatron's tp-comm-overlap).
  bool overlap_tensor = false;
  // Experts' all-to-alls of one micro-batch run during the passes of another (Megatron's
  // overlap-moe-expert-parallel-comm).
  bool overlap_expert = false;
  // Bytes sent from a stage to the next, per micro-batch and rank.
  Bytes activation = 0;
  // A rank's gradient of an embedding that the first and the last stage share: both ends sum it
  // before the update.
  Bytes tied = 0;
  // Unhidden time of the collectives of each kind of parallelism, for a rank's one micro-batch and
  // all its layers. Contained in the workload's times.
  struct Exposed {
    Seconds tensor = 0, context = 0, expert = 0;
  } forward, backward;

  int parts() const { return pipeline * virtual_stages; }          // of the model, in its order
  int model_ranks() const { return tensor * context * pipeline; }  // that hold one replica
  bool whole_job() const { return model_ranks() > 1 || expert > 1; }
};

// Returns the cluster as seen by the ranks, `step` apart, that exchange one stage's gradients:
// fewer ranks, fewer per node, which share their nodes' ports evenly with concurrent groups.
// Requires `step` and the pipeline to divide the ranks.
Cluster exchange_view(const Cluster& cluster, const Parallel& parallel, int step);

// Returns the cluster as seen by a group of its first `ranks` ranks. Requires them to divide its
// ranks.
Cluster group_view(const Cluster& cluster, int ranks);

// Returns the cluster as seen by ranks that sum a dense gradient: itself if the model is not split.
Cluster exchanging(const Cluster& cluster, const Parallel& parallel);

// Returns the distance of neighbours in the group that sums a dense gradient, or an expert's.
inline int exchange_step(const Parallel& parallel, bool expert) {
  return expert ? parallel.expert * parallel.expert_tensor : parallel.tensor;
}

}  // namespace syncline
