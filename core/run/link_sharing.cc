#include "core/run/link_sharing.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <map>

#include "core/base/index.h"

namespace syncline::run {
namespace {

Speed speed_of(double share) {
  int power = 0;
  const bool exact = std::frexp(share, &power) == 0.5;
  return {share, exact ? 1 / share : 0};
}

}  // namespace

Sharing::Sharing(std::vector<const collective::CollectiveCost*> costs) : costs_(std::move(costs)) {
  // A link's profile: its share of every stage that it serves, by cost and kind of link.
  using Profile = std::vector<std::pair<int, double>>;
  std::vector<std::vector<Profile>> by_kind;
  int stage_id = 0;
  for (const auto* cost : costs_) {
    first_.emplace(cost, index(stage_id));
    auto& own = by_kind.emplace_back(cost->footprint->link_kinds());
    for (const auto& stage : cost->stages) {
      for (const auto& [kind, seconds] : stage.links) {
        own[index(kind)].emplace_back(stage_id, seconds / stage.seconds_per_byte);
      }
      claims_.push_back({{}, stage.flow_rate, stage.seconds_per_byte});
      ++stage_id;
    }
  }

  // Links of one profile are full at the same moment, so they are one resource.
  std::map<Profile, int> kinds;
  for (const auto& joint : collective::joint_kinds(costs_)) {
    Profile profile;
    for (std::size_t p = 0; p < joint.size(); ++p) {
      if (joint[p] < 0) continue;
      const Profile& own = by_kind[p][index(joint[p])];
      profile.insert(profile.end(), own.begin(), own.end());
    }
    const auto [it, fresh] = kinds.try_emplace(profile, static_cast<int>(kinds.size()));
    if (!fresh) continue;
    for (const auto& [stage, share] : profile) {
      Claim& claim = claims_[index(stage)];
      claim.shares.emplace_back(it->second, share);
    }
  }
  resources_ = kinds.size();
}

void LinkSharing::share(std::vector<SharedFlow*>& flows) {
  if (flows.size() < 2 || flows.size() > kFew) return fill(flows);
  FewClaims claims{};
  std::array<SharedFlow*, kFew> few{};
  for (std::size_t i = 0; i < flows.size(); ++i) claims[i] = (few[i] = flows[i])->claim;
  const std::size_t count = flows.size();
  if (const Known* known = find(claims)) {
    for (std::size_t i = 0; i < count; ++i) few[i]->speed = known->speeds[i];
    flows.clear();
    return;
  }
  fill(flows);
  const std::size_t place = place_of(claims);
  known_[place ^ 1] = std::exchange(known_[place], Known{claims, {}});
  for (std::size_t i = 0; i < count; ++i) known_[place].speeds[i] = few[i]->speed;
}

// Fills like water: a common level rises evenly for all open flows, until a resource is full or a
// flow runs at full speed. A stopped flow keeps the level's speed and its use; the others rise over
// the rest. Each round stops at least one flow. Example: flows a, b and c share link 0; c and d
// share link 1; each could fill a link.
//
//            link 0         link 1       stopped
//   round 1  a + b + c = 1  c + d = 2/3  a, b and c at speed 1/3: link 0 is full
//   round 2                 c + d = 1    d at speed 2/3: link 1 is full
void LinkSharing::fill(std::vector<SharedFlow*>& open) {
  for (auto* flow : open) flow->speed = {};
  if (open.size() < 2) {
    open.clear();
    return;
  }
  for (const auto* flow : open) {
    for (const auto& share : flow->claim->shares) taken_[index(share.first)] = 0;
  }
  double level = 0;
  while (!open.empty()) {
    // The limit of the level: the first flow at full speed or the first full resource.
    for (const auto* flow : open) {
      for (const auto& share : flow->claim->shares) slope_[index(share.first)] = 0;
    }
    double stop = std::numeric_limits<double>::infinity();
    for (const auto* flow : open) {
      stop = std::min(stop, flow->claim->flow_rate);
      for (const auto& share : flow->claim->shares) {
        slope_[index(share.first)] += share.second / flow->claim->flow_rate;
      }
    }
    int full = -1;  // the first of several full resources
    for (const auto* flow : open) {
      for (const auto& share : flow->claim->shares) {
        const double left = (1 - taken_[index(share.first)]) / slope_[index(share.first)];
        if (slope_[index(share.first)] <= 0 || left > stop || (left == stop && full < 0)) continue;
        full = left == stop ? std::min(full, share.first) : share.first;
        stop = left;
      }
    }
    level = std::max(level, stop);

    // Flows that stop at this level have their speed.
    const std::size_t before = open.size();
    std::erase_if(open, [&](SharedFlow* flow) {
      const auto& claim = *flow->claim;
      const bool blocked =
          std::ranges::any_of(claim.shares, [&](const auto& share) { return share.first == full; });
      if (claim.flow_rate > level && !blocked) return false;
      flow->speed = speed_of(std::min(1.0, level / claim.flow_rate));
      for (const auto& share : claim.shares)
        taken_[index(share.first)] += flow->speed.share * share.second;
      return true;
    });
    assert(open.size() < before && "each round settles a flow");
    if (open.size() == before) open.clear();
  }
}

}  // namespace syncline::run
