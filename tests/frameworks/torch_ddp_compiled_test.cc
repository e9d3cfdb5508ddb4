// The pieces into which torch.compile cuts a model of DistributedDataParallel, as DDPOptimizer
// itself made them, on random models.

#include <gtest/gtest.h>

#include "formats/dialect/dialects.h"
#include "tests/frameworks/facts.h"

namespace syncline::dialect {
namespace {

using test::Facts;
using test::facts_of;

// The gradients of each piece, the last one's first.
Json as_facts(const std::vector<std::int64_t>& ends) {
  Json list = Json::array();
  std::int64_t begin = 0;
  for (const std::int64_t end : ends) {
    Json& piece = list.emplace_back(Json::array());
    for (; begin <= end; ++begin) piece.push_back(begin);
  }
  return list;
}

TEST(TorchCompiledDdpFacts, Pieces) {
  for (const Facts& facts : facts_of("ddp_compiled")) {
    const Cluster cluster = test::cluster_of(1, facts.head.at("ranks").get<int>());
    for (const Json& one : facts.cases) {
      SCOPED_TRACE(facts.place(one) + " " + one.at("config").dump());
      const Workload workload = test::workload_of_case(facts, one);
      const auto strategy = test::Framework{pytorch_ddp_dialect(), cluster}.strategy_of(
          one.at("config").dump(), workload);
      EXPECT_EQ(as_facts(strategy.graph_segments), one.at("pieces"));
    }
  }
}

}  // namespace
}  // namespace syncline::dialect
