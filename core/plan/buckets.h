// Groups of gradients and parameters that travel together: by fusion, partition and compression.
#pragma once

#include <vector>

#include "core/base/units.h"
#include "core/communication.h"
#include "core/plan.h"
#include "core/strategy.h"

namespace syncline::plan {

struct GradientBuckets {
  std::vector<Bucket> buckets;  // in the order in which they become ready (or are released)
  // Release tick of each bucket and its expected readiness, in seconds from the step's begin;
  // empty: each is sent once ready.
  std::vector<std::pair<Seconds, Seconds>> releases;
};

// Returns the buckets of a step's gradients. Sparse gradients, and those of a sparse codec, travel
// by themselves and are partitioned; the rest follows the fusion rule.
GradientBuckets gradient_buckets(const Workload& workload, const Cluster& cluster,
                                 const Strategy& strategy, const TrainingPoint& point);

// Returns the tensors that sums have room for, in backward order: gradients, and with sums_frozen
// the frozen parameters of their groups.
std::vector<int> summed_tensors(const Workload& workload, const Strategy& strategy);

// Returns the buckets that LocalSGD averages, in `fragments` parts of similar bytes: parameters,
// first layer first, then, with `buffers`, statistics. Requires a tensor per part.
std::vector<std::vector<Bucket>> parameter_buckets(const Workload& workload, const Fusion& fusion,
                                                   const BucketTraits& traits, bool buffers,
                                                   int fragments);

// Returns the buckets of groups that are gathered together in shards; empty without groups.
std::vector<Bucket> gather_buckets(const Workload& workload, const Strategy& strategy,
                                   const std::vector<std::vector<int>>& groups);

// Priority scheduling, decided in advance: the order of buckets if a free network always takes the
// most urgent ready one (ByteScheduler, Peng et al. 2019). All executors keep to that order, so
// they run the same plan.

struct Urgent {
  Seconds ready = 0;
  int rank = 0;          // lowest first; equal ones in the order of the list
  Seconds duration = 0;  // of its exchange if no other runs
  Bytes bytes = 0;
};

// Returns indices of `items` in sending order. A sent item cannot be overtaken. `credit`: bytes
// that may be under way at once; 0: one item. One item may always be under way, of any size.
std::vector<int> urgent_first(const std::vector<Urgent>& items, Bytes credit);

// Compression: the buckets that are encoded at this point of the training, with the elements kept
// of each.

// Marks the bucket with its codec and the elements it keeps.
void compress(Bucket& bucket, const compress::Codec* codec, const Compression& compression,
              const Workload& workload, std::int64_t step);

// Turns the whole bucket into one matrix, with a codec that does so. Requires elements in it.
void factor_whole(Bucket& bucket, const compress::Codec* codec, const Compression& compression);

}  // namespace syncline::plan
