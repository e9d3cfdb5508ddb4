// Ranks that no launcher starts: what they are given to meet by.
#include "live/local_ranks.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/ranks.h"

namespace syncline::live {
namespace {

TEST(LocalRanks, ShareATokenOfTheirOwn) {
  const auto one = local_ranks({"true"}, 2, "/m");
  const auto other = local_ranks({"true"}, 2, "/m");
  const std::string token = one[0].environment.at("SYNCLINE_TOKEN");
  EXPECT_EQ(token.size(), 64U);
  EXPECT_EQ(one[1].environment.at("SYNCLINE_TOKEN"), token);
  EXPECT_NE(other[0].environment.at("SYNCLINE_TOKEN"), token);
}

// Nobody can take its port before rank 0 does, and once rank 0 is gone nobody is called there.
TEST(LocalRanks, RankZeroIsGivenASocketThatListens) {
  auto ranks = local_ranks({"sh", "-c", "test -S /dev/fd/$SYNCLINE_LISTENER"}, 2);
  ranks[1].words = {"sh", "-c", "test ! -e /dev/fd/$SYNCLINE_LISTENER"};
  const std::string end = "127.0.0.1:" + ranks[1].environment.at("SYNCLINE_PORT");
  ranks[1].environment["SYNCLINE_LISTENER"] = ranks[0].environment.at("SYNCLINE_LISTENER");
  EXPECT_EQ(other_end(test::called(end).fd()), end);
  EXPECT_EQ(exit_code(run_ranks(ranks, {})), 0);
  EXPECT_NE(other_end(test::called(end).fd()), end);
}

TEST(LocalRanks, TakeNoOtherDescriptorForTheirSocket) {
  RankEnvironment environment;
  environment.rendezvous = RankEnvironment::Rendezvous::kAddress;
  environment.host = kLoopback;
  environment.port = 4711;
  const Socket other = listen_on(kLoopback, 0);
  environment.listener = other.fd();
  EXPECT_THROW(OpenRendezvous open(environment), MachineError);
  EXPECT_EQ(parse_address(own_end(other.fd())), kLoopback) << "it stays open";
}

}  // namespace
}  // namespace syncline::live
