// Speeds of collectives under way together: what few claims came to before is what they come to
// again, in whatever order they were asked about.
#include "core/run/link_sharing.h"

#include <gtest/gtest.h>

#include <random>

namespace syncline::run {
namespace {

std::vector<Claim> random_claims(std::mt19937& random, int resources) {
  std::vector<Claim> claims(6);
  for (Claim& claim : claims) {
    claim.flow_rate = 0.1 + static_cast<double>(random() % 10);
    for (int r = 0; r < resources; ++r) {
      if (random() % 2 == 0)
        claim.shares.emplace_back(r, static_cast<double>(1 + random() % 10) / 10);
    }
  }
  return claims;
}

std::vector<double> speeds(LinkSharing& sharing, const std::vector<const Claim*>& claims) {
  std::vector<SharedFlow> flows;
  for (const Claim* claim : claims) flows.push_back({claim, {}});
  std::vector<SharedFlow*> open;
  for (SharedFlow& flow : flows) open.push_back(&flow);
  sharing.share(open);
  EXPECT_TRUE(open.empty());
  std::vector<double> speeds;
  for (const SharedFlow& flow : flows) speeds.push_back(flow.speed.share);
  return speeds;
}

// All of one link at full speed.
const Claim kFirst{{{0, 1.0}}, 1.0, 1.0};
const Claim kSecond{{{1, 1.0}}, 1.0, 1.0};

TEST(LinkSharing, KnownClaimsHaveTheirSpeedsAgain) {
  constexpr int kResources = 4;
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    const auto claims = random_claims(random, kResources);
    LinkSharing kept(kResources);
    for (int i = 0; i < 50; ++i) {
      std::vector<const Claim*> some;
      for (auto count = random() % 6; count > 0; --count) {
        some.push_back(&claims[random() % claims.size()]);
      }
      LinkSharing fresh(kResources);
      ASSERT_EQ(speeds(kept, some), speeds(fresh, some)) << round << ", " << some.size();
    }
  }
}

TEST(LinkSharing, TwoOnOneLinkHaveHalfOfItEach) {
  const Claim other = kFirst;
  LinkSharing sharing(1);
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(speeds(sharing, {&kFirst, &other}), (std::vector<double>{0.5, 0.5}));
    EXPECT_EQ(speeds(sharing, {&kFirst}), (std::vector<double>{1.0}));
  }
}

// Three share the first link, a third each. One of them crosses the second too, and leaves two
// thirds of it.
TEST(LinkSharing, ASlowedFlowsRestGoesToOthers) {
  const Claim both{{{0, 1.0}, {1, 1.0}}, 1.0, 1.0};
  LinkSharing sharing(2);
  const auto found = speeds(sharing, {&kFirst, &kFirst, &both, &kSecond});
  for (std::size_t flow = 0; flow < 3; ++flow) EXPECT_DOUBLE_EQ(found[flow], 1.0 / 3);
  EXPECT_DOUBLE_EQ(found[3], 2.0 / 3);
}

// The crossing flow takes half of the second link at full speed, a quarter at half of it.
TEST(LinkSharing, AClaimCountsByItsSpeed) {
  const Claim both{{{0, 1.0}, {1, 0.5}}, 1.0, 1.0};
  LinkSharing sharing(2);
  EXPECT_EQ(speeds(sharing, {&kFirst, &both, &kSecond}), (std::vector<double>{0.5, 0.5, 0.75}));
}

TEST(LinkSharing, TwoHaveTheSpeedsOfAListOfTwo) {
  constexpr int kResources = 4;
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    const auto claims = random_claims(random, kResources);
    LinkSharing sharing(kResources);
    for (int i = 0; i < 50; ++i) {
      const Claim* a = &claims[random() % claims.size()];
      const Claim* b = &claims[random() % claims.size()];
      const auto [one, other] = sharing.speeds_of(a, b);
      ASSERT_EQ((std::vector{one.share, other.share}), speeds(sharing, {a, b})) << round;
    }
  }
}

// Multiplied by an exact inverse, or divided: the same time to the bit.
TEST(LinkSharing, AnInverseIsUsedIfItIsExact) {
  const Claim claim{{{0, 1.0}}, 1.0, 1.0};
  LinkSharing sharing(1);
  for (const std::size_t count : {1u, 2u, 3u, 4u, 5u, 7u}) {
    std::vector<SharedFlow> flows(count, {&claim, {}});
    std::vector<SharedFlow*> open;
    for (SharedFlow& flow : flows) open.push_back(&flow);
    sharing.share(open);
    const Speed speed = flows.front().speed;
    EXPECT_EQ(speed.inverse > 0, count == 1 || count == 2 || count == 4) << count;
    for (const double seconds : {0.1, 1.0 / 3, 7e-5}) {
      EXPECT_EQ(speed.time_of(seconds), seconds / speed.share) << count;
    }
  }
}

}  // namespace
}  // namespace syncline::run
