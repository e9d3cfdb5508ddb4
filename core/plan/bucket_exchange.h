// One bucket's exchange by itself, for those who weigh buckets without making a plan.
#pragma once

#include <vector>

#include "core/plan/plan.h"
#include "core/scenario/cluster.h"
#include "core/scenario/strategy.h"
#include "core/scenario/workload.h"

namespace syncline::plan {

// What a plan does for this bucket: encoding on the compute stream, then collectives and decoding
// one after the other on a communication stream. Nothing where there is one rank.
struct BucketExchange {
  Seconds encode = 0;
  std::vector<collective::Collective> collectives;
  Seconds decode = 0;
};

BucketExchange exchange_of(const Bucket& bucket, const Workload& workload, const Cluster& cluster,
                           const Strategy& strategy);

}  // namespace syncline::plan
