// Random configurations of each framework that is written: read, written and read again they are
// the same plan, which takes as long.
#include <gtest/gtest.h>

#include "core/executor.h"
#include "core/plan.h"
#include "formats/dialect/write.h"
#include "tests/support/random_configs.h"

namespace syncline::dialect {
namespace {

Seconds step_time(const plan::Plan& plan, const Cluster& cluster) {
  const auto ends =
      run::make_model_executor({cluster, {}, 1})->run(plan, {}, 6).timeline.period_ends;
  return (ends[5] - ends[3]) / 2;
}

class RoundTrip : public testing::TestWithParam<const char*> {};

TEST_P(RoundTrip, KeepsRandomConfigurations) {
  const std::string name = GetParam();
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    const Json root = test::random_framework_scenario(seed, name, 8);
    const Scenario scenario =
        input::parse_scenario(input::document_from_text("random.json", root.dump()));
    const Strategy& strategy = scenario.strategies.front();
    const Workload& workload = scenario.workload;
    const auto written = write_config(*find_dialect(name), strategy, workload, scenario.cluster);
    ASSERT_TRUE(written);
    const std::string what = std::to_string(seed) + ": " + root["strategies"].dump() + " as " +
                             written->config.dump() + ": " + written->difference;
    ASSERT_TRUE(written->exact) << what;
    const Strategy again = reading_of(*find_dialect(name), written->config, workload,
                                      scenario.cluster, {.algorithm = strategy.algorithm})
                               .strategy;
    const plan::Plan before = plan::make_plan(workload, scenario.cluster, strategy);
    const plan::Plan after = plan::make_plan(workload, scenario.cluster, again);
    ASSERT_EQ(plan_difference(before, after), "") << what;
    const Seconds time = step_time(before, scenario.cluster);
    ASSERT_NEAR(step_time(after, scenario.cluster), time, 1e-9 * time) << what;
  }
}

INSTANTIATE_TEST_SUITE_P(Dialects, RoundTrip,
                         testing::Values("pytorch", "megatron", "deepspeed", "fsdp", "hf_trainer"),
                         [](const auto& i) { return std::string(i.param); });

}  // namespace
}  // namespace syncline::dialect
