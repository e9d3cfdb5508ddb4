// Mutual slowdown of concurrent collectives: claims on the links that they share, and max-min fair
// speeds under those claims.
#pragma once

#include <array>
#include <cstddef>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/cost.h"

namespace syncline::run {

// A stage's claim on each resource, as the share that it uses at full speed.
struct Claim {
  std::vector<std::pair<int, double>> shares;  // (resource, share)
  double flow_rate = 0;                        // of one of its messages at full speed
};

// The resources that the collectives of one plan compete for. Links that carry the same shares of
// the same stages are one resource, so a ring over thousands of ranks has two.
class Sharing {
 public:
  // Groups links by claims; equal costs in equal order give equal groups. Costs must outlive this.
  explicit Sharing(std::vector<const collective::CollectiveCost*> costs);

  const std::vector<const collective::CollectiveCost*>& costs() const { return costs_; }
  std::size_t resources() const { return resources_; }
  // Returns the claims of a cost's stages, in their order.
  const Claim* claims(const collective::CollectiveCost* cost) const {
    return &claims_[first_.at(cost)];
  }

 private:
  std::vector<const collective::CollectiveCost*> costs_;
  std::unordered_map<const collective::CollectiveCost*, std::size_t> first_;  // first stage of each
  std::vector<Claim> claims_;
  std::size_t resources_ = 0;
};

// A stage in transfer.
struct SharedFlow {
  const Claim* claim = nullptr;
  double speed = 1;  // share of full speed
};

// Sets the speed of each flow: max-min fair (Bertsekas and Gallager, Data Networks, 6.5.2) between
// messages, as on links. A flow's level is the rate of one of its messages, so ten messages get
// more of a link than one. Flows without competitors run at 1. It is called at every event of a
// plan, so it keeps its memory and results for few claims.
class LinkSharing {
 public:
  explicit LinkSharing(std::size_t resources) : taken_(resources), slope_(resources) {}

  // Sets the flows' speeds and empties `flows`. Requires claims of one Sharing in all calls.
  void share(std::vector<SharedFlow*>& flows);

 private:
  static constexpr std::size_t kFew = 3;
  using FewClaims = std::array<const Claim*, kFew>;
  struct Known {
    FewClaims claims{};
    std::array<double, kFew> speeds{};
  };
  static std::size_t place_of(const FewClaims& claims);
  void fill(std::vector<SharedFlow*>& open);

  std::vector<Known> known_;   // by place of the claims: the last ones with it
  std::vector<double> taken_;  // by resource
  std::vector<double> slope_;  // increase of the open flows' use per increase of the level by 1
};

}  // namespace syncline::run
