// Interference measured by ranks whose computation and collectives are known to slow each other.
#include <gtest/gtest.h>

#include "live/link_calibration.h"
#include "tests/support/ranks.h"

namespace syncline::live {
namespace {

struct Truth {
  double slowdown = 0, collective_slowdown = 0;
  Seconds pass = 0;  // of the operators; a plan says a millisecond
  bool shared = false;
};

// Both go on at once, each the slower while the other runs.
class Machine final : public LiveExecutor {
 public:
  Machine(const ControlChannel& channel, const Truth& truth)
      : truth_(truth), rank_(channel.rank()) {}
  std::string_view name() const override { return "machine"; }
  Seconds clock_error() const override { return 0; }
  std::string hardware() const override { return "made up"; }
  bool shares_device() const override { return truth_.shared; }

  run::Outcome run(const plan::Plan& plan, const run::Gradients&, int periods) override {
    const Seconds computation =
        plan::seconds_of(plan.ops.front().work) / kMillisecond * truth_.pass;
    const auto count = static_cast<int>(plan.buckets.size());
    const Seconds collectives = count * kCollective;
    const double slow = 1 + truth_.slowdown, slow_collective = 1 + truth_.collective_slowdown;
    const Seconds both = std::min(computation * slow, collectives * slow_collective);
    // When so much of each is done.
    const auto at = [&](Seconds done, double slower) {
      return std::min(done * slower, both) + std::max(0.0, done - both / slower);
    };
    run::Outcome outcome;
    for (int period = 0; period < periods; ++period) {
      outcome.timeline.spans.push_back({period, 0, rank_, 0, at(computation, slow)});
      for (int i = 0; i < count; ++i) {
        outcome.timeline.spans.push_back({period, i + 1, rank_,
                                          at(i * kCollective, slow_collective),
                                          at((i + 1) * kCollective, slow_collective)});
      }
    }
    return outcome;
  }

 private:
  static constexpr Seconds kCollective = 1e-3;
  Truth truth_;
  int rank_;
};

std::vector<InterferenceSample> measured(const Truth& truth) {
  std::vector<InterferenceSample> samples;
  const auto failures = test::run_ranks(2, [&](ControlChannel& channel) {
    const auto found = interference_samples(
        channel,
        [&](const Device&, int) {
          return [&](const Workload&, ControlChannel& own) {
            return std::make_unique<Machine>(own, truth);
          };
        },
        64, 8 << 20, 2);
    if (channel.rank() == 0) samples = found;
  });
  EXPECT_EQ(failures, test::Failures(2));
  return samples;
}

TEST(Interference, IsFoundAsItIs) {
  for (const Seconds pass : {2e-5, 1e-3, 7e-3}) {
    for (const auto& [slowdown, collective] :
         {std::pair{0.0, 0.0}, {0.05, 0.2}, {0.65, 0.65}, {0.3, 0.0}}) {
      for (const auto& sample : measured({slowdown, collective, pass})) {
        EXPECT_NEAR(sample.slowdown, slowdown, 1e-9) << pass;
        EXPECT_NEAR(sample.collective_slowdown, collective, 1e-9) << pass;
      }
    }
  }
}

TEST(Interference, IsAskedOfEveryNumberOfChannels) {
  std::vector<int> channels;
  for (const auto& sample : measured({0.1, 0.1, 1e-3})) channels.push_back(sample.channels);
  EXPECT_EQ(channels, (std::vector{0, 2, 4, 8, 16}));
}

TEST(Interference, IsNotMeasuredIfRanksShareADevice) {
  EXPECT_TRUE(measured({0.1, 0.1, 1e-3, true}).empty());
}

}  // namespace
}  // namespace syncline::live
