// What collectives under way at the same time take from each other: claims on the links that they
// share, and max-min fair speeds under those claims.
#pragma once

#include <array>
#include <cstddef>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/cost.h"

namespace syncline::run {

// A stage's claim on each resource, as the share that it takes at full speed.
struct Claim {
  std::vector<std::pair<int, double>> shares;  // (resource, share)
  double flow_rate = 0;                        // of one of its messages at full speed
};

// What the collectives of one plan compete for. Links that carry the same shares of the same stages
// are one resource, so a ring over thousands of ranks knows two.
class Sharing {
 public:
  // Costs must outlive this. The same costs in the same order give the same claims.
  explicit Sharing(std::vector<const collective::CollectiveCost*> costs);

  const std::vector<const collective::CollectiveCost*>& costs() const { return costs_; }
  std::size_t resources() const { return resources_; }
  // Returns the claims of a cost's stages, one behind the other.
  const Claim* claims(const collective::CollectiveCost* cost) const {
    return &claims_[first_.at(cost)];
  }

 private:
  std::vector<const collective::CollectiveCost*> costs_;
  std::unordered_map<const collective::CollectiveCost*, std::size_t> first_;  // stage of each
  std::vector<Claim> claims_;
  std::size_t resources_ = 0;
};

// A stage that transfers.
struct SharedFlow {
  const Claim* claim = nullptr;
  double speed = 1;  // share of full speed
};

// Sets the speed of each flow: max-min fair (Bertsekas and Gallager, Data Networks, 6.5.2) between
// messages, as links are: a flow's level is the rate of one of its messages, so that many messages
// on a link have more of it than few. Flows that compete with none run at 1.
// Asked at every event of a plan, so it keeps its room, and what the same few claims came to
// before.
class LinkSharing {
 public:
  explicit LinkSharing(std::size_t resources) : taken_(resources), slope_(resources) {}

  // `flows` is left empty. Claims of all calls are of one Sharing.
  void share(std::vector<SharedFlow*>& flows);

 private:
  static constexpr std::size_t kFew = 3;
  using FewClaims = std::array<const Claim*, kFew>;
  struct Hash {
    std::size_t operator()(const FewClaims& claims) const;
  };
  void fill(std::vector<SharedFlow*>& open);

  std::unordered_map<FewClaims, std::array<double, kFew>, Hash> known_;  // speeds
  std::vector<double> taken_;                                            // by resource
  std::vector<double> slope_;  // what the open flows take as the level rises by 1
};

}  // namespace syncline::run
