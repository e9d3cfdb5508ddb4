// Routes: the collectives that bring a bucket to all ranks (flat, by leaders of groups or in
// shards), and the bucket's processing before and after. Ranks themselves sum blocks with scales
// (int8, fp8), in fp32, in an all-to-all followed by an all-gather.
#pragma once

#include "core/communication.h"

namespace syncline::plan {

// Throws an InternalError that names the strategy unless all members are ranks below `ranks`.
void expect_ranks(const collective::Groups& groups, int ranks, const Strategy& strategy);

// Returns the bucket's sum on all ranks, with copying, encoding and decoding. Groups of one rank
// have no work and are left out; one rank has no exchange.
BucketExchange exchange_of(Bucket bucket, const Workload& workload, const Cluster& cluster,
                           const Strategy& strategy);

// Returns an all-reduce across LocalSGD groups, one shard per rank. If a rank keeps more than its
// shard, an all-gather inside each group follows.
Route sum_across_groups(const Bucket& bucket, const Cluster& cluster, const Strategy& strategy);

// Returns the first half of a split exchange: a reduce-scatter inside groups and the all-reduce
// across them. Afterwards each rank of a group holds its part of the total.
Route scatter_of(const Bucket& bucket, const Cluster& cluster, const Strategy& strategy);

// Returns an all-gather of the ranks' parts; `again`: of the second copy.
Route gather_of(const Bucket& bucket, const Workload& workload, const Cluster& cluster,
                const Strategy& strategy, bool again);

}  // namespace syncline::plan
