// Which gradients and parameters travel together: by fusion, partition and compression.
#pragma once

#include <vector>

#include "core/base/units.h"
#include "core/communication.h"
#include "core/plan.h"
#include "core/strategy.h"

namespace syncline::plan {

struct GradientBuckets {
  std::vector<Bucket> buckets;  // in the order in which they become ready (or are released)
  // By bucket: the tick that releases it, and when it is expected to be ready, from the step's
  // begin; empty: each goes once ready.
  std::vector<std::pair<Seconds, Seconds>> releases;
};

// Sparse gradients, and those that a sparse codec takes, travel alone; the rest goes by the fusion
// rule. Tensors that travel alone are partitioned.
GradientBuckets gradient_buckets(const Workload& workload, const Cluster& cluster,
                                 const Strategy& strategy, const TrainingPoint& point);

// Parameters, first layer first, then, with `buffers`, the statistics without a gradient: what
// LocalSGD averages, in `fragments` parts of about as many bytes. Requires a tensor for each.
std::vector<std::vector<Bucket>> parameter_buckets(const Workload& workload, const Fusion& fusion,
                                                   const BucketTraits& traits, bool buffers,
                                                   int fragments);

// Returns the buckets of groups in which sharded parameters are gathered; none without groups.
std::vector<Bucket> gather_buckets(const Workload& workload, const Strategy& strategy,
                                   const std::vector<std::vector<int>>& groups);

// Priority scheduling, decided beforehand: the order in which buckets go when the network, whenever
// it is free, takes the most urgent of those that are ready (ByteScheduler, Peng et al. 2019).
// Executors then keep to that order, so that every one of them runs the same plan.

struct Urgent {
  Seconds ready = 0;
  int rank = 0;          // the lowest goes first; equal ones in the order of the list
  Seconds duration = 0;  // of its exchange alone on the network
  Bytes bytes = 0;
};

// Places in `items`, in the order in which they are handed to the network. What has been handed
// over can no longer be overtaken. `credit`: bytes that may be under way or waiting there; 0: a
// single one. One always may, however large.
std::vector<int> urgent_first(const std::vector<Urgent>& items, Bytes credit);

// Compression: which buckets are encoded at this point of the training, and how many elements of
// each are kept.

// Marks the bucket with its codec and the elements it keeps.
void compress(Bucket& bucket, const compress::Codec* codec, const Compression& compression,
              const Workload& workload, std::int64_t step);

// The whole bucket as one matrix, with a codec that makes it one. Requires elements in it.
void factor_whole(Bucket& bucket, const compress::Codec* codec, const Compression& compression);

}  // namespace syncline::plan
