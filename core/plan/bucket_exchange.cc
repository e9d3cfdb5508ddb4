#include "core/plan/bucket_exchange.h"

#include "core/plan/builder.h"

namespace syncline::plan {

BucketExchange exchange_of(const Bucket& bucket, const Workload& workload, const Cluster& cluster,
                           const Strategy& strategy) {
  const Builder build(workload, cluster, strategy);
  BucketExchange exchange;
  if (build.plan.ranks == 1) return exchange;
  exchange.collectives = build.collectives_of(bucket, 0);
  if (bucket.codec == nullptr) return exchange;
  exchange.encode = build.encode_time(bucket);
  exchange.decode = build.decode_time(bucket);
  return exchange;
}

}  // namespace syncline::plan
