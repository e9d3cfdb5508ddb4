// When torchft's replica groups average which parameters, as torchft itself did, on random models.

#include <gtest/gtest.h>

#include "formats/dialect/dialects.h"
#include "tests/frameworks/facts.h"

namespace syncline::dialect {
namespace {

using test::Facts;

// Step and elements of each all-reduce of a period, and the steps in which means are applied.
struct Period {
  std::vector<Json> sent;
  std::vector<Json> applied;
};

Period period_of(const plan::Plan& plan) {
  Period period;
  for (const plan::Op& op : plan.ops) {
    if (const auto* one = std::get_if<collective::Collective>(&op.work)) {
      period.sent.push_back({op.step + 1, one->elements});
    } else if (const auto* work = std::get_if<plan::Compute>(&op.work);
               work != nullptr && work->phase == plan::Phase::kAverage) {
      period.applied.emplace_back(op.step + 1);
    }
  }
  std::ranges::sort(period.sent);
  return period;
}

// Elements of each step: of torchft's buckets only the sum is compared, for it cuts a fragment's
// flat parameters, and Syncline packs whole ones.
std::map<int, std::int64_t> elements_by_step(const std::vector<Json>& sent) {
  std::map<int, std::int64_t> sums;
  for (const Json& one : sent) sums[one[0].get<int>()] += one[1].get<std::int64_t>();
  return sums;
}

TEST(TorchftFacts, FragmentsOfAPeriod) {
  for (const Facts& facts : test::facts_of("diloco")) {
    const test::Framework torchft{torchft_dialect(),
                                  test::cluster_of(facts.head.at("ranks").get<int>(), 1)};
    for (const Json& one : facts.cases) {
      const Json& config = one.at("config");
      SCOPED_TRACE(facts.place(one) + " " + config.dump());
      const Workload workload = test::workload_of_case(facts, one);
      const Period period = period_of(torchft.plan_of(config.dump(), workload));
      auto sent = one.at("sent").get<std::vector<Json>>();
      std::ranges::sort(sent);
      if (config.contains("use_bucketization")) {
        EXPECT_EQ(elements_by_step(period.sent), elements_by_step(sent));
      } else {
        EXPECT_EQ(period.sent, sent);
      }
      EXPECT_EQ(period.applied, one.at("applied").get<std::vector<Json>>());
    }
  }
}

}  // namespace
}  // namespace syncline::dialect
