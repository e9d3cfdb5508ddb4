// Every collective of a step under ZeRO 0 to 3 as DeepSpeed itself asked for it, on random models.

#include <gtest/gtest.h>

#include "formats/dialect/dialects.h"
#include "tests/frameworks/facts.h"

namespace syncline::dialect {
namespace {

using test::Facts;
using test::facts_of;

// The plan of a case's configuration on its model.
plan::Plan plan_of_case(const Facts& facts, const Json& one) {
  const test::Framework zero{deepspeed_dialect(), test::cluster_of(1, one.at("ranks").get<int>())};
  return zero.plan_of(one.at("config").dump(), test::workload_of_case(facts, one));
}

// DeepSpeed pads what is dealt out, which the plans leave out: at stages 1 and 2 the parameters of
// a format together, at stage 3 each.
std::int64_t padded(const plan::Bucket& bucket, const Workload& workload, std::int64_t stage,
                    int ranks) {
  const auto multiple = [](std::int64_t n, std::int64_t unit) {
    return (n + unit - 1) / unit * unit;
  };
  if (stage < 3) return multiple(bucket.elements, std::int64_t{2} * ranks);
  std::int64_t sum = 0;
  for (const int t : bucket.tensors) {
    sum += multiple(workload.tensors[static_cast<std::size_t>(t)].elements, ranks);
  }
  return sum;
}

std::vector<Json> expected(const Facts& facts, const Json& one) {
  const Json& zero = one.at("config").at("zero_optimization");
  const auto stage = zero.at("stage").get<std::int64_t>();
  const int ranks = one.at("ranks").get<int>();
  const Workload workload = test::workload_of_case(facts, one);
  const plan::Plan plan = plan_of_case(facts, one);
  return test::collectives_of(plan, false, [&](const plan::Op& op, std::int64_t elements) {
    const auto& moved = std::get<collective::Collective>(op.work);
    if (stage < 3 && !op.gathers) return elements;
    return padded(plan.buckets[static_cast<std::size_t>(moved.bucket)], workload, stage, ranks);
  });
}

TEST(DeepSpeedFacts, Stages0To3) {
  for (const char* rule : {"zero0", "zero1", "zero2", "zero3", "zero3_nested"}) {
    for (const Facts& facts : facts_of(rule)) {
      for (const Json& one : facts.cases) {
        SCOPED_TRACE(facts.place(one) + " " + one.at("config").dump());
        std::vector<Json> ours = expected(facts, one);
        // The facts leave out what is of one element.
        std::erase_if(ours, [](const Json& moved) { return moved[2] == 1; });
        test::expect_collectives(ours, one);
      }
    }
  }
}

}  // namespace
}  // namespace syncline::dialect
