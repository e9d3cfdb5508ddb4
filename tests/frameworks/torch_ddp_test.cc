// DistributedDataParallel's buckets as torch itself made them, on random models.

#include <gtest/gtest.h>

#include "formats/dialect/dialects.h"
#include "tests/frameworks/facts.h"

namespace syncline::dialect {
namespace {

using test::Facts;
using test::facts_of;

// Tensors, the last gradient that was there, elements.
Json as_facts(const std::vector<plan::Bucket>& buckets) {
  Json list = Json::array();
  for (const auto& bucket : buckets) {
    list.push_back({bucket.tensors, bucket.ready, bucket.elements});
  }
  return list;
}

TEST(TorchDdpFacts, Buckets) {
  for (const Facts& facts : facts_of("ddp")) {
    const test::Framework ddp{pytorch_ddp_dialect(),
                              test::cluster_of(1, facts.head.at("ranks").get<int>())};
    for (const Json& one : facts.cases) {
      SCOPED_TRACE(facts.place(one) + " " + one.at("config").dump());
      const Workload workload = test::workload_of_case(facts, one);
      const auto plan = ddp.plan_of(one.at("config").dump(), workload);
      EXPECT_EQ(as_facts(plan.buckets), one.at("later"));
    }
  }
}

}  // namespace
}  // namespace syncline::dialect
