// Which rule made the buckets: each of torch's rules is found again from what it made of random
// gradients.
#include "imports/bucket_rule.h"

#include <gtest/gtest.h>

#include <random>

#include "core/base/index.h"
#include "formats/dialect/dialect.h"
#include "tests/support/text.h"

namespace syncline::job {
namespace {

using test::contains;

Step step_of(std::mt19937& random, int gradients, std::int64_t most) {
  Step step;
  for (int i = 0; i < gradients; ++i) {
    step.gradients.emplace_back().elements =
        1 + static_cast<std::int64_t>(random() % static_cast<unsigned>(most));
  }
  return step;
}

std::vector<std::vector<int>> made_by(const Json& config, const Step& step,
                                      const std::string& torch = "") {
  Cluster cluster;
  cluster.nodes = 2;
  Workload workload;
  workload.framework_version = torch;
  for (const Gradient& gradient : step.gradients) {
    Tensor& tensor = workload.tensors.emplace_back();
    tensor.elements = gradient.elements;
    tensor.dtype = gradient.dtype;
  }
  return dialect::reading_of(*dialect::find_dialect("pytorch"), config, workload, cluster)
      .strategy.fusion.groups;
}

void exchange(Step& step, const std::vector<std::vector<int>>& buckets, bool told) {
  step.exchanges.clear();
  for (const auto& bucket : buckets) {
    ObservedExchange& one = step.exchanges.emplace_back();
    one.kind = "all_reduce";
    for (const int i : bucket) one.elements += step.gradients[index(i)].elements;
    if (told) one.gradients = bucket;
  }
}

TEST(BucketRule, EachOfTorchsRulesIsFoundFromItsBuckets) {
  std::mt19937 random(5);
  const std::vector<Json> configs{
      Json::object(),
      {{"bucket_cap_mb", 25}},
      {{"bucket_cap_mb", 8}},
      {{"bucket_cap_mb", 3.7}},
      {{"bucket_cap_mb", 1000}},
      {{"bucket_cap_mb", 50}, {"torch", "2.0"}},
      {{"_DEFAULT_FIRST_BUCKET_BYTES", 12000000}},
      {{"find_unused_parameters", true}},
  };
  for (const Json& config : configs) {
    for (int round = 0; round < 20; ++round) {
      Step step = step_of(random, 40 + static_cast<int>(random() % 60), 3000000);
      const auto buckets = made_by(config, step);
      for (const bool told : {true, false}) {
        if (!told && config.contains("find_unused_parameters")) continue;  // not in ready order
        exchange(step, buckets, told);
        const BucketRule rule = bucket_rule({}, step);
        ASSERT_TRUE(rule.explains) << config << "\n" << rule.words;
        ASSERT_EQ(rule.strategy.at("dialect"), "pytorch");
        EXPECT_EQ(made_by(rule.strategy.at("config"), step, rule.torch), buckets) << rule.strategy;
        EXPECT_EQ(rule.torch, config.contains("torch") ? "2.2" : "") << config;
      }
    }
  }
}

// Where a trace says its torch, the rules of others are not tried, and what is proposed is read as
// that version reads it.
TEST(BucketRule, ATraceMaySayTheVersion) {
  std::mt19937 random(11);
  for (const char* torch : {"2.0.1+cu118", "2.7.1"}) {
    Observed observed;
    observed.version = torch;
    Step step = step_of(random, 80, 3000000);
    const auto buckets = made_by({{"bucket_cap_mb", 8}}, step, torch);
    exchange(step, buckets, true);
    const BucketRule rule = bucket_rule(observed, step);
    ASSERT_TRUE(rule.explains) << rule.words;
    EXPECT_EQ(rule.torch, std::string(torch).substr(0, 3));
    EXPECT_FALSE(rule.strategy.at("config").contains("torch"));
    EXPECT_EQ(made_by(rule.strategy.at("config"), step, rule.torch), buckets) << rule.strategy;
  }
}

TEST(BucketRule, MixedTypesFillBucketsOfTheirOwn) {
  std::mt19937 random(6);
  for (int round = 0; round < 20; ++round) {
    Step step = step_of(random, 60, 3000000);
    for (Gradient& gradient : step.gradients) {
      if (random() % 3 == 0) gradient.dtype = DType::kBf16;
    }
    const auto buckets = made_by({{"bucket_cap_mb", 16}}, step);
    exchange(step, buckets, true);
    const BucketRule rule = bucket_rule({}, step);
    ASSERT_TRUE(rule.explains) << rule.words;
    EXPECT_EQ(made_by(rule.strategy.at("config"), step), buckets);
  }
}

TEST(BucketRule, TheSimplestRuleIsReported) {
  std::mt19937 random(7);
  Step step = step_of(random, 80, 3000000);
  exchange(step, made_by(Json::object(), step), true);
  BucketRule rule = bucket_rule({}, step);
  EXPECT_EQ(rule.words, "torch's default: 1 MiB, then 25 MiB");
  EXPECT_TRUE(rule.strategy.at("config").empty());
  exchange(step, made_by({{"bucket_cap_mb", 25}}, step), true);
  rule = bucket_rule({}, step);
  EXPECT_TRUE(rule.words.starts_with("bucket_cap_mb 25 (")) << rule.words;
  ASSERT_EQ(rule.others.size(), 1U);
  EXPECT_TRUE(rule.others[0].starts_with("torch's default (1 MiB, then 25 MiB) makes "));
  Observed views;
  views.bucket_views = true;
  EXPECT_EQ(bucket_rule(views, step).strategy.at("config").at("gradient_as_bucket_view"), true);
}

TEST(BucketRule, OthersCloseBeforeTheyWouldExceedALimit) {
  std::mt19937 random(8);
  Step step = step_of(random, 50, 400000);
  constexpr Bytes kLimit = 5 * kMiB;
  std::vector<std::vector<int>> buckets(1);
  Bytes bytes = 0;
  for (int i = 0; i < 50; ++i) {
    const Bytes own = step.gradients[index(i)].bytes();
    if (bytes + own > kLimit) {
      buckets.emplace_back();
      bytes = 0;
    }
    buckets.back().push_back(i);
    bytes += own;
  }
  exchange(step, buckets, true);
  const BucketRule rule = bucket_rule({}, step);
  EXPECT_TRUE(rule.explains);
  EXPECT_EQ(rule.strategy.at("fusion").at("close"), "before");
}

TEST(BucketRule, BucketsWithoutARuleBecomeGroups) {
  std::mt19937 random(9);
  Step step = step_of(random, 12, 3000000);
  const std::vector<std::vector<int>> odd{{0, 3, 6, 9}, {1, 4, 7, 10}, {2, 5, 8, 11}};
  exchange(step, odd, true);
  Observed observed;
  observed.ddp_modules = 3;
  const BucketRule rule = bucket_rule(observed, step);
  EXPECT_FALSE(rule.explains);
  EXPECT_TRUE(contains(rule.words, "3 DDP modules"));
  EXPECT_EQ(rule.strategy.at("fusion").at("groups"), Json(odd));
  EXPECT_EQ(rule.strategy.at("bucket_copies"), true);

  // A loss that is averaged on the way carries no gradient.
  exchange(step, made_by(Json::object(), step), false);
  ObservedExchange loss;
  loss.kind = "all_reduce";
  loss.elements = 1;
  step.exchanges.insert(step.exchanges.begin(), loss);
  EXPECT_EQ(seen_buckets(step), made_by(Json::object(), step));

  step.exchanges.clear();
  EXPECT_TRUE(bucket_rule({}, step).strategy.is_null());
}

}  // namespace
}  // namespace syncline::job
