// What a collective costs on a cluster when it has the network to itself, and which links it keeps
// busy meanwhile. Closed form: time = overhead + latency + payload * rate, where
//   rate     adds up, over the rounds, the busiest link's share of the payload / its capacity;
//   latency  is what the rounds take beyond that: rounds * latency on one tier, the longest chain
//            of messages where tiers mix (critical_path.h).
// Groups that work side by side share the links.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "core/collective/collective.h"
#include "core/collective/critical_path.h"
#include "core/collective/network.h"
#include "core/collective/schedule.h"

namespace syncline {

// All rounds of one stage.
struct StagePrice {
  double seconds_per_byte = 0;  // of payload
  // Seconds per payload byte for which each link works that carries something, by link id.
  std::vector<std::pair<int, double>> links;
};

struct CollectivePrice {
  std::vector<StagePrice> stages;
  double seconds_per_byte = 0;  // sum over the stages
  std::vector<double> sent;     // payload multiples that each world rank sends
};

// Prices by collective, worked out once each. One book serves one cluster.
class PriceBook {
 public:
  explicit PriceBook(const Cluster& cluster);
  ~PriceBook();
  PriceBook(const PriceBook&) = delete;
  PriceBook& operator=(const PriceBook&) = delete;

  // References stay valid as long as the book.
  const CollectivePrice& price(const Collective& collective);
  // The latency of each stage for this payload.
  const std::vector<Seconds>& latencies(const Collective& collective);
  // The same, were the payload `bytes` long.
  std::vector<Seconds> latencies_for(const Collective& collective, double bytes);
  // Overhead, latency and transfer.
  Seconds time(const Collective& collective);
  const Cluster& cluster() const { return cluster_; }

 private:
  struct Entry;
  Entry& entry(const Collective& collective);
  Cluster cluster_;
  Network network_;
  std::vector<std::unique_ptr<Entry>> entries_;
  Entry* last_ = nullptr;
};

}  // namespace syncline
