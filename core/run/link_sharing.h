// Mutual slowdown of concurrent collectives: claims on the links that they share, and max-min fair
// speeds under those claims.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/cost.h"

namespace syncline::run {

// A stage's claim on each resource, as the share that it uses at full speed.
struct Claim {
  std::vector<std::pair<int, double>> shares;  // (resource, share)
  double flow_rate = 0;                        // of one of its messages at full speed
  double seconds_per_byte = 0;                 // of payload at full speed
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

// Share of full speed.
struct Speed {
  double share = 1;
  double inverse = 1;  // 1 / share if that is exact, else 0

  // Returns the time of work that takes `seconds` at full speed: the same for both forms of it.
  Seconds time_of(Seconds seconds) const {
    return inverse > 0 ? seconds * inverse : seconds / share;
  }
  bool operator==(const Speed&) const = default;
};

// A stage in transfer.
struct SharedFlow {
  const Claim* claim = nullptr;
  Speed speed;
};

// Sets the speed of each flow: max-min fair (Bertsekas and Gallager, Data Networks, 6.5.2) between
// messages, as on links. A flow's level is the rate of one of its messages, so ten messages get
// more of a link than one. Flows without competitors run at 1. It is called at every event of a
// plan, so it keeps its memory and results for few claims.
class LinkSharing {
 public:
  explicit LinkSharing(std::size_t resources)
      : known_(std::size_t{1} << kPlaceBits), taken_(resources), slope_(resources) {}

  // Sets the flows' speeds and empties `flows`. Requires claims of one Sharing in all calls.
  void share(std::vector<SharedFlow*>& flows);
  // Returns the speeds of two.
  std::pair<Speed, Speed> speeds_of(const Claim* a, const Claim* b) {
    if (const Known* known = find({a, b})) return {known->speeds[0], known->speeds[1]};
    SharedFlow first{a, {}}, second{b, {}};
    both_ = {&first, &second};
    share(both_);
    return {first.speed, second.speed};
  }

 private:
  static constexpr std::size_t kFew = 3;
  static constexpr int kPlaceBits = 10;  // two collectives have some hundred results
  using FewClaims = std::array<const Claim*, kFew>;
  struct Known {
    FewClaims claims{};
    std::array<Speed, kFew> speeds{};
  };
  // Returns the place of claims' results among the known ones.
  static std::size_t place_of(const FewClaims& claims) {
    std::uint64_t hash = 0;
    for (const Claim* claim : claims) {
      hash = (hash + reinterpret_cast<std::uintptr_t>(claim) / sizeof(Claim)) * 0x9e3779b97f4a7c15;
    }
    return static_cast<std::size_t>(hash >> (64 - kPlaceBits));
  }
  // Returns claims' results, which are in their place or next to it; nullptr: they are not known.
  const Known* find(const FewClaims& claims) const {
    const std::size_t place = place_of(claims);
    for (const std::size_t at : {place, place ^ 1}) {
      const FewClaims& own = known_[at].claims;  // compared here, as a call takes longer
      if (own[0] == claims[0] && own[1] == claims[1] && own[2] == claims[2]) return &known_[at];
    }
    return nullptr;
  }
  void fill(std::vector<SharedFlow*>& open);

  std::vector<Known> known_;  // by place of the claims: the last ones with it, those before next
  std::vector<SharedFlow*> both_;
  std::vector<double> taken_;  // by resource
  std::vector<double> slope_;  // increase of the open flows' use per increase of the level by 1
};

}  // namespace syncline::run
