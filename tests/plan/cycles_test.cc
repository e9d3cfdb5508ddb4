// Release at ticks and Horovod's packing.
#include "core/plan/fusion.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/plan/planned.h"

namespace syncline::plan {
namespace {

using Groups = std::vector<std::vector<int>>;

std::vector<OnWire> wires(const std::vector<Bytes>& bytes) {
  return each(bytes, [](Bytes size) { return OnWire{DType::kFp32, size}; });
}

TEST(Cycles, GradientsReadyAtATickGoTogether) {
  const auto releases =
      tick_releases({0.5, 1, 1.5, 1.5, 3.25}, wires({1, 1, 1, 1, 1}), 100, 1.0, 0.0);
  EXPECT_EQ(each(releases, &Release::time), (std::vector<Seconds>{1, 2, 4}));
  EXPECT_EQ(each(releases, &Release::groups), (std::vector<Groups>{{{0, 1}}, {{2, 3}}, {{4}}}));
}

TEST(Cycles, ThePhaseShiftsThem) {
  const auto releases = tick_releases({0.5, 1, 1.5}, wires({1, 1, 1}), 100, 1.0, 0.75);
  EXPECT_EQ(each(releases, &Release::time), (std::vector<Seconds>{0.75, 1.75}));
  EXPECT_EQ(releases.at(1).groups, (Groups{{1, 2}}));
}

TEST(Cycles, NeverExceedsTheThreshold) {
  const auto at = [](Bytes threshold) {
    return tick_releases({0, 0, 0, 0}, wires({3, 5, 9, 2}), threshold, 1.0, 0.0).front().groups;
  };
  EXPECT_EQ(at(8), (Groups{{0, 1}, {2}, {3}}));
  EXPECT_EQ(at(0), (Groups{{0}, {1}, {2}, {3}}));
  EXPECT_EQ(at(100), (Groups{{0, 1, 2, 3}}));
}

// Compressed to bf16 a gradient shares its bucket with those of its kind, not with half precision.
TEST(Cycles, ACompressedGradientHasItsCodecsFormat) {
  Workload workload;
  for (const DType dtype : {DType::kFp32, DType::kFp16, DType::kFp32}) {
    const std::int64_t elements = 300;  // 600 bytes each on the wire
    workload.tensors.push_back(
        test::tensor_of("t" + std::to_string(workload.tensors.size()), {elements}, dtype));
  }
  Strategy strategy;
  strategy.fusion.rule = Fusion::Rule::kSize;
  strategy.fusion.close = Fusion::Close::kBefore;
  strategy.fusion.size = 1200;
  strategy.fusion.cycle = kMillisecond;
  const auto buckets_with = [&](const char* codec) {
    strategy.compression.codec = codec;
    return each(make_plan(workload, test::cluster_of(2, 1), strategy).buckets, &Bucket::tensors);
  };
  EXPECT_EQ(buckets_with("bf16"), (Groups{{0, 2}, {1}}));
  EXPECT_EQ(buckets_with("fp16"), (Groups{{0}, {1}, {2}}));
}

// Random: every gradient once, none before it is ready, none more than a cycle later, ticks rise.
TEST(Cycles, LosesNothing) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<Seconds> ready;
    std::vector<OnWire> wire;
    Seconds clock = 0;
    for (int i = 0; i < 30; ++i) {
      clock += static_cast<double>(random() % 100) * 1e-4;
      ready.push_back(clock);
      wire.push_back(
          {random() % 4 == 0 ? DType::kFp16 : DType::kFp32, static_cast<Bytes>(random() % 50)});
    }
    const Seconds cycle = 1e-3 * static_cast<double>(1 + random() % 20);
    const Seconds phase = cycle * static_cast<double>(random() % 10) / 10;
    std::vector<int> seen(ready.size(), 0);
    Seconds last = -1;
    for (const auto& release : tick_releases(ready, wire, 60, cycle, phase)) {
      EXPECT_GT(release.time, last);
      last = release.time;
      const double cycles = (release.time - phase) / cycle;
      EXPECT_NEAR(cycles, std::round(cycles), 1e-6);
      for (const auto& group : release.groups) {
        Bytes bytes = 0;
        for (const int index : group) {
          const auto i = static_cast<std::size_t>(index);
          ++seen[i];
          bytes += wire[i].bytes;
          EXPECT_LE(ready[i], release.time);
          EXPECT_GT(ready[i], release.time - cycle - 1e-12);
          EXPECT_EQ(wire[i].dtype, wire[static_cast<std::size_t>(group.front())].dtype);
        }
        EXPECT_TRUE(bytes <= 60 || group.size() == 1);
      }
    }
    for (const int count : seen) EXPECT_EQ(count, 1);
  }
}

}  // namespace
}  // namespace syncline::plan
