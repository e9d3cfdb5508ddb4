// Every collective of a step as Megatron-Core's DistributedDataParallel itself asked for it, on
// random models, with experts among them.

#include <gtest/gtest.h>

#include "formats/dialect/megatron.h"
#include "tests/frameworks/facts.h"

namespace syncline::dialect {
namespace {

using test::Facts;
using test::facts_of;

Workload model_of(const Facts& facts, const Json& one) {
  Workload workload = test::workload_of_case(facts, one);
  workload.parallel.expert = one.at("expert_ranks").get<int>();
  for (const Json& expert : one.at("experts")) {
    workload.tensors[expert.get<std::size_t>()].expert = true;
  }
  return workload;
}

std::vector<Json> buffers_of(const Facts& facts, const Json& one) {
  const Cluster cluster = test::cluster_of(1, one.at("ranks").get<int>());
  const Workload workload = model_of(facts, one);
  const Dialect megatron = megatron_dialect();
  const Strategy strategy = reading_of(megatron, one.at("config"), workload, cluster).strategy;
  return test::collectives_of(plan::make_plan(workload, cluster, strategy), strategy.cross_step);
}

TEST(MegatronFacts, Buffers) {
  for (const Facts& facts : facts_of("buffers")) {
    for (const Json& one : facts.cases) {
      SCOPED_TRACE(facts.place(one) + " " + one.at("config").dump());
      // Megatron asks for those of one rank too, which move nothing.
      Json moved = one;
      moved["collectives"] = Json::array();
      for (const Json& each : one.at("collectives")) {
        if (each[4] > 1) moved["collectives"].push_back(each);
      }
      test::expect_collectives(buffers_of(facts, one), moved);
    }
  }
}

}  // namespace
}  // namespace syncline::dialect
