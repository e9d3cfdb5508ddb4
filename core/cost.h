// The time of a collective alone on a cluster, and the links that it keeps busy meanwhile:
//   time = overhead + latency + payload * rate
// rate sums, over the rounds, the busiest link's share of the payload over its capacity. latency is
// rounds * latency on one tier, else the longest chain of messages (critical_path.h). A cost model
// of the cluster (cluster.h) replaces that time; the links' shares stay, and latency is the rest.
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/collective/collective.h"
#include "core/collective/critical_path.h"
#include "core/collective/nccl.h"
#include "core/collective/network.h"
#include "core/collective/schedule.h"

namespace syncline::collective {

struct CollectiveCost {
  std::shared_ptr<const Footprint> footprint;  // kinds of links; shared by payloads of all sizes
  std::vector<StageCost> stages;
  double seconds_per_byte = 0;  // sum over the stages
  std::vector<double> carried;  // payload multiples that pass each link, by kind
  double scale = 1;  // how much less than the links say the transfer takes; already counted above

  // Payload multiples that a world rank sends: what its own port carries.
  double sent(int rank) const;
};

// Returns the links that costs keep busy, as far as these costs tell them apart: for each sort of
// link its kind in every cost, or -1 where that one leaves it idle.
std::vector<std::vector<int>> joint_kinds(const std::vector<const CollectiveCost*>& costs);

// The least that any payload up to some size takes, for bounds: latency + bytes * seconds_per_byte.
struct LeastCost {
  Seconds first = 0;  // before its first byte
  Seconds latency = 0;
  double seconds_per_byte = 0;
  double scale = 1;  // how much less than the cost's own the links' work is
};

// By how much the tiers of a cluster differ from others, all of them alike: latencies, and
// bandwidths with the caps of flows.
struct LinkShift {
  std::vector<Tier> from;
  double latency = 1;
  double bandwidth = 1;
};

// Costs by collective, worked out once each. One cache serves one cluster. What only the links
// decide is shared by all caches of a process that cost the same links at the same time.
class CostCache {
 public:
  explicit CostCache(const Cluster& cluster);
  // The same, sharing with the caches of the links that the cluster's are shifted from: the longest
  // chain of messages is as long there for another payload. Where that takes long to find, it is
  // taken to be the chain of this payload, with its latency and its transfer shifted, as in a
  // derivative.
  CostCache(const Cluster& cluster, const LinkShift& shift);
  ~CostCache();
  CostCache(const CostCache&) = delete;
  CostCache& operator=(const CostCache&) = delete;

  // References stay valid as long as the cache.
  const CollectiveCost& cost(const Collective& collective);
  // Returns the latency of each stage for this payload.
  const std::vector<Seconds>& latencies(const Collective& collective);
  // The least latency and transfer that this collective could take, were it split or fused into
  // payloads of at most `largest` bytes, and were ranks to run ahead of each other.
  LeastCost least(const Collective& collective, Bytes largest);
  // Returns whether a cost model says what it takes, not the links.
  bool evaluated_by_cost_model(const Collective& collective) {
    return cost_model_entry(collective) != nullptr;
  }
  // Overhead, latency and transfer.
  Seconds time(const Collective& collective);
  // The same but for rounding, for a search that asks about each of very many sizes once: nothing
  // is walked or kept for a size by itself.
  Seconds quick_time(const Collective& collective);
  const Cluster& cluster() const { return cluster_; }

 private:
  class Links;
  struct Entry;
  struct CostModelEntry;
  Entry& entry(const Collective& collective);
  CostModelEntry* cost_model_entry(const Collective& collective);
  std::optional<CollectiveTime> cost_model_time(const Collective& collective);
  double share_of_measured(const Collective& collective, int measured_on);
  LeastCost least_of_links(const Collective& collective, Bytes largest);
  LeastCost least_in_chunks_of(const Collective& chunked, const Collective& payload);
  Cluster cluster_;
  NcclCostModel nccl_{cluster_};
  std::shared_ptr<Links> links_;
  double latency_ = 1;    // times the links'
  double bandwidth_ = 1;  // likewise
  std::vector<std::unique_ptr<Entry>> entries_;
  Entry* last_ = nullptr;
  std::unordered_multimap<Bytes, std::unique_ptr<CostModelEntry>>
      cost_model_entries_;  // by payload
  CostModelEntry* last_cost_model_ = nullptr;
  std::vector<std::pair<Collective, double>> shares_of_measured_;  // one a shape of groups
};

}  // namespace syncline::collective
