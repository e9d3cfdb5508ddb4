// DGC's ramp and counts as in Paddle's code, with its encoded bytes.
#include "core/compress/dgc.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "core/codec.h"
#include "tests/support/small_plans.h"

namespace syncline::compress {
namespace {

Compression ramp(std::vector<double> sparsity, std::int64_t begin, std::int64_t steps) {
  Compression compression;
  compression.codec = "dgc";
  compression.sparsity = std::move(sparsity);
  compression.rampup_begin_step = begin;
  compression.rampup_step = steps;
  return compression;
}

using Steps = std::vector<std::int64_t>;

std::vector<int> indices(const Compression& compression, const Steps& steps) {
  std::vector<int> found;
  for (const std::int64_t step : steps) found.push_back(sparsity_index(compression, step));
  return found;
}

TEST(Sparsity, FiveStagesOverAHundredSteps) {
  const auto five = ramp({0.75, 0.9375, 0.984375, 0.996, 0.999}, 0, 100);
  for (std::int64_t step = 0; step < 100; ++step) {
    ASSERT_EQ(sparsity_index(five, step), step / 20) << "step " << step;
  }
  EXPECT_EQ(indices(five, {100, 1000000000}), (std::vector{4, 4}));
  EXPECT_EQ(sparsity_changes(five), (Steps{0, 20, 40, 60, 80}));
}

TEST(Sparsity, TheDocumentsExample) {
  const auto docs = ramp({0.984375, 0.996, 0.999}, 1252 * 2, 1252 * 3);
  EXPECT_EQ(indices(docs, {0, 2503, 2504, 3755, 3756, 5007, 5008}),
            (std::vector{-1, -1, 0, 0, 1, 1, 2}));
  EXPECT_EQ(sparsity_changes(docs), (Steps{2504, 3756, 5008}));
}

// More stages than steps: some are skipped, none lasts for no step.
TEST(Sparsity, ARampShorterThanItsStages) {
  const auto jump = ramp({0.1, 0.2, 0.3, 0.4, 0.5}, 10, 2);
  EXPECT_EQ(indices(jump, {10, 11, 12}), (std::vector{0, 2, 4}));
  EXPECT_EQ(sparsity_changes(jump), (Steps{10, 11, 12}));
  EXPECT_EQ(sparsity_changes(ramp({0.999}, 7, 1)), Steps{7});
}

// Far out single precision is coarse, but the index neither falls nor leaves its list.
TEST(Sparsity, AVeryLongRampOnlyRises) {
  const auto slow = ramp({0.1, 0.2, 0.3}, 5, std::int64_t{1} << 40);
  const auto changes = sparsity_changes(slow);
  ASSERT_EQ(changes.size(), 3u);
  EXPECT_EQ(indices(slow, {changes[1] - 1, changes[1], changes[2] - 1, changes[2],
                           std::int64_t{1} << 61}),
            (std::vector{0, 1, 1, 2, 2}));
}

TEST(KeptElements, SinglePrecisionAsInPaddle) {
  EXPECT_EQ(kept_elements(2048000, 0.999), 2047);  // exact arithmetic gives 2048
  EXPECT_EQ(kept_elements(16384, 0.999), 16);
  EXPECT_EQ(kept_elements(65536, 0.999), 65);
  EXPECT_EQ(kept_elements(262144, 0.999), 262);
  EXPECT_EQ(kept_elements(1048576, 0.999), 1048);
  EXPECT_EQ(kept_elements(1 << 20, 0.75), 1 << 18);
}

TEST(KeptElements, AtLeastOneAndAtMostAll) {
  EXPECT_EQ(kept_elements(1, 0.999), 1);
  EXPECT_EQ(kept_elements(1000, 0.9999999), 1);
  EXPECT_EQ(kept_elements(12345, 0), 12345);
  // Single precision knows no odd numbers beyond 2^24: rounding must not keep more than there is.
  for (const std::int64_t elements : {16777217, 16777219, 33554435, 100000007}) {
    EXPECT_LE(kept_elements(elements, 0), elements);
  }
}

// Encoded bytes per rank, summed over the compressed tensors of ResNet-50.
TEST(EncodedBytes, TableOfResNet50) {
  const Codec* dgc = find_codec("dgc");
  const auto encoded = [&](std::int64_t classes, double sparsity) {
    Bytes sum = 0;
    for (const auto& tensor : test::paddle_resnet50(classes).tensors) {
      if (!dgc->applies(tensor, Compression().min_elements)) continue;
      sum += dgc->encoded_bytes(tensor.elements, kept_elements(tensor.elements, sparsity));
    }
    return sum;
  };
  const std::map<double, std::pair<Bytes, Bytes>> published{{0.75, {50978816, 46923776}},
                                                            {0.9375, {12744704, 11730944}},
                                                            {0.984375, {3186176, 2932736}},
                                                            {0.996, {815496, 750608}},
                                                            {0.999, {203728, 187512}}};
  for (const auto& [sparsity, bytes] : published) {
    EXPECT_EQ(encoded(1000, sparsity), bytes.first) << sparsity << ", 1000 classes";
    EXPECT_EQ(encoded(10, sparsity), bytes.second) << sparsity << ", 10 classes";
  }
}

TEST(EncodedBytes, FiftyTwoTensorsAreCompressed) {
  for (const std::int64_t classes : {10, 1000}) {
    const auto workload = test::paddle_resnet50(classes);
    int compressed = 0;
    Bytes dense = 0;
    for (const auto& tensor : workload.tensors) {
      if (find_codec("dgc")->applies(tensor, Compression().min_elements)) {
        ++compressed;
      } else {
        dense += tensor.bytes();
      }
    }
    EXPECT_EQ(compressed, 52);
    EXPECT_NEAR(static_cast<double>(dense) / static_cast<double>(kMiB), 0.256, 0.003);
    EXPECT_NEAR(static_cast<double>(gradient_bytes(workload)) / static_cast<double>(kMiB),
                classes == 10 ? 89.75 : 97.49, 0.005);
  }
}

}  // namespace
}  // namespace syncline::compress
