// The time of a collective alone on a cluster, and the links that it uses:
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
  double seconds_per_byte = 0;  // of payload, summed over the stages
  std::vector<double> carried;  // multiples of the payload that pass each link, by kind
  double scale = 1;  // transfer time / transfer time by the links; already contained above

  // Returns the multiples of the payload that the port of a world rank sends.
  double payloads_sent(int rank) const;
};

// Returns the links that costs keep busy, as far as these costs distinguish them: for each sort of
// link its kind in every cost, or -1 if that cost leaves it idle.
std::vector<std::vector<int>> joint_kinds(const std::vector<const CollectiveCost*>& costs);

// Minimum time of any payload up to some size, for bounds: latency + bytes * seconds_per_byte.
struct LeastCost {
  Seconds first = 0;  // before its first byte
  Seconds latency = 0;
  double seconds_per_byte = 0;
  double scale = 1;  // links' work / the cost's own
};

// Ratios of a cluster's tiers to the tiers `from`, the same for all tiers: latencies, and
// bandwidths with the caps of flows.
struct LinkShift {
  std::vector<Tier> from;
  double latency = 1;
  double bandwidth = 1;
};

// Costs by collective, each computed once. One cache serves one cluster. Costs that depend on the
// links only are shared by all caches of a process that cost the same links at the same time.
class CostCache {
 public:
  explicit CostCache(const Cluster& cluster);
  // Shares with the caches of the unshifted links (shift.from): the longest chain of messages there
  // belongs to another payload. If that chain is slow to find, this payload's chain is used with
  // its latency and transfer shifted, as in a derivative.
  CostCache(const Cluster& cluster, const LinkShift& shift);
  ~CostCache();
  CostCache(const CostCache&) = delete;
  CostCache& operator=(const CostCache&) = delete;

  // Returns the cost. References are valid as long as the cache.
  const CollectiveCost& cost(const Collective& collective);
  // Returns the latency of each stage for this payload.
  const std::vector<Seconds>& latencies(const Collective& collective);
  // Returns the minimum latency and transfer of this collective over splits and fusions into
  // payloads of at most `largest` bytes, with ranks running ahead of each other.
  LeastCost least(const Collective& collective, Bytes largest);
  // True if a cost model gives the time, not the links.
  bool evaluated_by_cost_model(const Collective& collective) {
    return cost_model_entry(collective) != nullptr;
  }
  // Returns overhead, latency and transfer.
  Seconds time(const Collective& collective);
  // Returns the same up to rounding, for a search that asks about very many sizes once: no size is
  // walked or stored by itself.
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
  LeastCost least_chunked_cost(const Collective& chunked, const Collective& payload);
  Cluster cluster_;
  NcclCostModel nccl_{cluster_};
  std::shared_ptr<Links> links_;
  double latency_ = 1;    // factor on the links' latency
  double bandwidth_ = 1;  // factor on the links' bandwidth
  std::vector<std::unique_ptr<Entry>> entries_;
  Entry* last_ = nullptr;
  std::unordered_multimap<Bytes, std::unique_ptr<CostModelEntry>>
      cost_model_entries_;  // by payload
  CostModelEntry* last_cost_model_ = nullptr;
  std::vector<std::pair<Collective, double>> shares_of_measured_;  // one per shape of groups
};

}  // namespace syncline::collective
