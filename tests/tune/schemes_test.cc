// Other schemes of a framework: the search names one where nothing else fits, or where it gains.
#include "studies/tune/schemes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "formats/dialect/dialect.h"
#include "formats/input/document.h"
#include "studies/explain/explanation.h"
#include "studies/tune/alternatives.h"
#include "studies/tune/tuning.h"
#include "tests/support/text.h"
#include "tests/support/tunings.h"

namespace syncline::tune {
namespace {

// Twelve layers of 10^8 parameters on four nodes of four GPUs that have so many GB: copies of all
// of it take 19.2 GB, and buckets 4.8 more.
input::Document job_by(Json strategy, double gigabytes, const std::string& more = "{}") {
  Json root = test::small_search("{}");
  root.erase("search");
  root.update(Json::parse(more));
  root["workload"]["tensors"] = Json::array();
  for (int layer = 12; layer-- > 0;) {
    root["workload"]["tensors"].push_back({{"name", "layers." + std::to_string(layer) + ".weight"},
                                           {"shape", {10000, 10000}},
                                           {"backward_us", 20000}});
  }
  root["cluster"]["device"]["memory_gbytes"] = gigabytes;
  strategy["name"] = "own";
  root["strategies"] = Json::array({strategy});
  return input::document_from_text("job.json", root.dump());
}

const Json kDdp = {{"dialect", "pytorch"}, {"config", Json::object()}};

Json zero(int stage) {
  return {{"dialect", "deepspeed"},
          {"config", {{"zero_optimization", {{"stage", stage}}}, {"steps_per_print", 7}}}};
}

Tuning tuned_job(const input::Document& document, const std::string& emit = "") {
  TuneOptions options;
  options.budget = 50;
  return test::tuning_of(document, options, emit.empty() ? nullptr : dialect::find_dialect(emit));
}

bool fits(const Tuning& tuning, const Strategy& strategy) {
  return measure::memory_of(tuning.scenario, strategy).fits();
}

const Alternative* row_named(const Tuning& tuning, const std::string& name) {
  const auto row = std::ranges::find(tuning.alternatives, name,
                                     [](const Alternative& one) { return one.strategy.name; });
  return row == tuning.alternatives.end() ? nullptr : &*row;
}

TEST(Schemes, OneThatFitsIsNamedIfNoStrategyDoes) {
  const Tuning tuning = tuned_job(job_by(kDdp, 12));
  const Strategy& best = tuning.tuned.winner().strategy;
  EXPECT_EQ(best.dialect, "fsdp") << best.name;
  EXPECT_TRUE(fits(tuning, best));
  EXPECT_FALSE(fits(tuning, tuning.tuned.baseline.strategy));
  const Alternative* row = row_named(tuning, best.name);
  ASSERT_NE(row, nullptr);
  EXPECT_TRUE(row->set_with.starts_with("in fsdp: ")) << row->set_with;
  EXPECT_GT(row->memory.total(), 0);
  // Each scheme fits, and none is a row beside another that is as fast and holds less.
  EXPECT_GE(tuning.schemes.size(), 3u);
  for (const auto& [scheme, strategy] : tuning.schemes) {
    EXPECT_TRUE(fits(tuning, strategy)) << scheme.name;
  }
}

// Whatever the memory, what is named fits, or the answer says that nothing does and what would.
TEST(Schemes, NamedSchemesFit) {
  for (const Json& strategy : {kDdp, zero(1), zero(3), Json::object()}) {
    for (const double gigabytes : {0.5, 3.0, 9.0, 12.0, 22.0, 80.0}) {
      const Tuning tuning = tuned_job(job_by(strategy, gigabytes));
      const bool named = fits(tuning, tuning.tuned.winner().strategy);
      EXPECT_TRUE(named || gigabytes < 9) << strategy << gigabytes;
      EXPECT_NE(named, test::contains(tuning.shortage.fits, "does not fit either"))
          << tuning.shortage.words();
    }
  }
}

TEST(Schemes, AreTheEmittedFrameworks) {
  const Tuning tuning = tuned_job(job_by(kDdp, 12), "deepspeed");
  ASSERT_TRUE(tuning.emitted);
  EXPECT_EQ(tuning.tuned.winner().strategy.dialect, "deepspeed");
  EXPECT_TRUE(fits(tuning, tuning.emitted->strategy));
  EXPECT_GE(tuning.emitted->config["zero_optimization"]["stage"], 1);
  const Tuning fsdp = tuned_job(job_by(kDdp, 12), "fsdp");
  ASSERT_TRUE(fsdp.emitted);
  EXPECT_TRUE(fsdp.emitted->exact);
  EXPECT_EQ(fsdp.emitted->config["units"], Json({"layers.*"}));
}

// The best of all stages, with the job's other keys as they are.
TEST(Schemes, TheBestStageIsNamed) {
  for (const int stage : {0, 1, 2, 3}) {
    const Tuning tuning = tuned_job(job_by(zero(stage), 80), "deepspeed");
    ASSERT_TRUE(tuning.emitted);
    EXPECT_EQ(tuning.emitted->config["steps_per_print"], 7);
    Evaluator model(tuning.scenario);
    for (const auto& [scheme, strategy] : tuning.schemes) {
      EXPECT_LE(tuning.tuned.winner().metrics.step_time, model.step_time(strategy) * 1.002)
          << scheme.name;
      EXPECT_NE(scheme.name, "ZeRO stage " + std::to_string(stage));
    }
  }
}

// A search that the scenario declares is not left, as long as something of it fits.
TEST(Schemes, ADeclaredSearchIsItsOwnLimit) {
  const char* search = R"({"search": {"base": "own", "streams": [1, 2], "confirm": 0}})";
  EXPECT_TRUE(tuned_job(job_by(kDdp, 80, search)).schemes.empty());
  EXPECT_FALSE(tuned_job(job_by(kDdp, 12, search)).schemes.empty());
}

// Advice is of the same space: it fits.
TEST(Schemes, AdviceFits) {
  for (const double gigabytes : {8.0, 12.0, 22.0, 80.0}) {
    const input::Document document = job_by(kDdp, gigabytes);
    const measure::Explanation explanation =
        measure::explain_strategies(document, input::parse_scenario(document), {"own"}, {});
    for (const measure::Advice& advice : explanation.strategies.front().advice) {
      EXPECT_TRUE(measure::memory_of(explanation.scenario, advice.strategy).fits())
          << advice.change;
    }
    if (gigabytes > 12) continue;
    ASSERT_FALSE(explanation.strategies.front().advice.empty());
    EXPECT_TRUE(test::contains(explanation.strategies.front().advice.front().set_with, "in fsdp"));
  }
}

}  // namespace
}  // namespace syncline::tune
