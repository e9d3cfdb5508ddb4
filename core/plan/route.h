// Routes: the collectives that bring a bucket to all ranks, flat, by leaders of groups or in
// shards, and what is done to it on either side. Blocks with scales (int8, fp8) are summed by the
// ranks themselves, in fp32, in an all-to-all with an all-gather behind it.
#pragma once

#include "core/communication.h"

namespace syncline::plan {

// Throws an InternalError, which names the strategy, unless the ranks are all of a cluster of so
// many.
void expect_ranks(const collective::Groups& groups, int ranks, const Strategy& strategy);

// Returns the bucket's sum on all ranks, with copying, encoding and decoding. Groups of one rank
// have nothing to do and are left out. Nothing at all where there is one rank.
Exchange exchange_of(Bucket bucket, const Workload& workload, const Cluster& cluster,
                     const Strategy& strategy);

// Returns the sum over the groups of LocalSGD, each of whose ranks carries its part; where those
// hold more than that, the parts come together again in each group.
Route sum_across_groups(const Bucket& bucket, const Cluster& cluster, const Strategy& strategy);

// Returns the first half of a split exchange, after which each rank of a group holds its part of
// the sum of all: a reduce-scatter inside, and the all-reduce across groups.
Route scatter_of(const Bucket& bucket, const Cluster& cluster, const Strategy& strategy);

// Returns an all-gather of what the ranks hold their parts of; `again`: of the second copy.
Route gather_of(const Bucket& bucket, const Workload& workload, const Cluster& cluster,
                const Strategy& strategy, bool again);

}  // namespace syncline::plan
