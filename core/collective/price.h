// What a collective costs on a cluster when it has the network to itself, and which links it keeps
// busy meanwhile. Closed form: time = latency + payload * rate, where
//   latency  is that of the longest chain of messages that wait for each other: a rank's next round
//            begins when all that it sent in the last one has left and all that it awaited has
//            arrived. A message occupies its sender for the fastest tier's latency; what a slower
//            tier adds delays the receiver alone.
//   rate     adds up, over the rounds, the busiest link's share of the payload / its capacity.
// On one tier this is exactly rounds * latency + bytes / bandwidth; across tiers it is exact for
// small and for large payloads and a little pessimistic between. Groups that work side by side
// share the links.
#pragma once

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "core/collective/network.h"
#include "core/collective/schedule.h"
#include "core/plan/plan.h"

namespace syncline {

// What concurrent collectives compete for: of each tier the ports up, the ports down, the switches.
inline constexpr int kMostResources = 3 * kMostTiers;

struct StagePrice {
  Seconds latency = 0;          // all rounds of the stage
  double seconds_per_byte = 0;  // likewise, a byte of payload
  // Seconds per payload byte for which the busiest link of each resource works.
  std::array<double, kMostResources> usage{};
  // The same for every link that carries something, by link id.
  std::vector<std::pair<int, double>> links;
};

struct CollectivePrice {
  std::vector<StagePrice> stages;
  Seconds latency = 0;                         // sum over the stages
  double seconds_per_byte = 0;                 // likewise
  std::array<double, kMostResources> usage{};  // likewise
  std::vector<double> sent;                    // payload multiples that each world rank sends
};

// The share of the chain's latency that falls to each stage.
std::vector<Seconds> stage_latencies(const Network& network, const Groups& groups,
                                     const Stages& stages);

// Prices by collective, worked out once each. One book serves one cluster.
class PriceBook {
 public:
  explicit PriceBook(const Cluster& cluster);
  ~PriceBook();
  PriceBook(const PriceBook&) = delete;
  PriceBook& operator=(const PriceBook&) = delete;

  // The reference stays valid as long as the book.
  const CollectivePrice& price(const Collective& collective);
  // latency + bytes * rate, plus the cluster's fixed cost of a collective.
  Seconds time(const Collective& collective);
  const Cluster& cluster() const { return cluster_; }

 private:
  struct Entry;
  Cluster cluster_;
  Network network_;
  std::vector<std::unique_ptr<Entry>> entries_;
  Entry* last_ = nullptr;
};

}  // namespace syncline
