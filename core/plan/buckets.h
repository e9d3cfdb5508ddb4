// Which gradients and parameters travel together: by fusion, partition and compression.
#pragma once

#include <vector>

#include "core/plan/communication.h"
#include "core/plan/plan.h"

namespace syncline::plan {

struct GradientBuckets {
  std::vector<Bucket> buckets;  // in the order in which they become ready (or are released)
  // By bucket: the tick that releases it, from the step's begin; empty: each goes once ready.
  std::vector<Seconds> releases;
};

// Sparse gradients, and those that a sparse codec takes, travel alone; the rest goes by the fusion
// rule. Tensors that travel alone are partitioned.
GradientBuckets gradient_buckets(const Workload& workload, const Cluster& cluster,
                                 const Strategy& strategy, const TrainingPoint& point);

// Parameters, first layer first, then, with `buffers`, the statistics without a gradient: what
// LocalSGD averages, in `fragments` parts of about as many bytes. Requires a tensor for each.
std::vector<std::vector<Bucket>> parameter_buckets(const Workload& workload, const Fusion& fusion,
                                                   bool buffers, int fragments);

// The buckets of the groups in which sharded parameters are gathered; none without groups.
std::vector<Bucket> gather_buckets(const Workload& workload, const Strategy& strategy);

}  // namespace syncline::plan
