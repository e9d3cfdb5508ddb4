// What a collective costs on a cluster when it has the network to itself, and which links it keeps
// busy meanwhile. Closed form: each round lasts as long as its slowest message,
//   max latency + payload * max over links (share of the payload on the link / its capacity),
// and rounds follow each other. Groups that work side by side share the links.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "core/collective/network.h"
#include "core/collective/schedule.h"
#include "core/plan/plan.h"

namespace syncline {

// Ports and backbones of each tier are the things that concurrent collectives compete for.
inline constexpr int kMostTiers = 6;
inline constexpr int kMostResources = 2 * kMostTiers;

struct StagePrice {
  Seconds latency = 0;           // all rounds of the stage
  double seconds_per_byte = 0;   // likewise, a byte of payload
  // Seconds per payload byte for which the busiest link of each resource works.
  std::array<double, kMostResources> usage{};
};

struct CollectivePrice {
  std::vector<StagePrice> stages;
  Seconds latency = 0;          // sum over the stages
  double seconds_per_byte = 0;  // likewise
  std::array<double, kMostResources> usage{};  // likewise
  std::vector<double> sent;     // payload multiples that each world rank sends
};

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
