// Predicted and measured side by side: step times from the ends of periods, kinds by their spans,
// advice where the links are off.
#include "studies/fidelity/validation.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/executor.h"
#include "core/plan.h"
#include "reports/validation_report.h"
#include "studies/fidelity/fidelity.h"
#include "tests/support/printed.h"
#include "tests/support/scratch.h"
#include "tests/support/small_plans.h"
#include "tests/support/text.h"

namespace syncline::measure {
namespace {

using test::Scratch;
using test::tensor_of;

Workload layers(int count) {
  Workload workload;
  workload.name = "layers";
  for (int i = 0; i < count; ++i) {
    workload.tensors.push_back(tensor_of("t" + std::to_string(i), {1000 << i}));
    workload.tensors.back().backward = 1e-3;
  }
  return workload;
}

// The model's own timeline stretched: every collective takes `factor` times as long.
run::Timeline stretched(const plan::Plan& plan, const run::Timeline& predicted, double small,
                        double large) {
  run::Timeline timeline = predicted;
  std::size_t seen = 0;
  for (auto& span : timeline.spans) {
    const auto& work = plan.ops[static_cast<std::size_t>(span.op)].work;
    if (const auto* c = std::get_if<collective::Collective>(&work)) {
      span.end = span.begin + (span.end - span.begin) * (c->bytes() < 100000 ? small : large);
      ++seen;
    }
  }
  EXPECT_GT(seen, 0U);
  return timeline;
}

ValidatedRow row_of(double small, double large) {
  const Workload workload = layers(12);
  Cluster cluster = test::cluster_of(4, 1);
  const plan::Plan plan = plan::make_plan(workload, cluster, {});
  const auto predicted = run::make_model_executor({cluster, {}, 1})->run(plan, {}, 4).timeline;
  const Seconds step = predicted.period_ends[3] - predicted.period_ends[2];
  return compare("each alone", plan, step, predicted, stretched(plan, predicted, small, large), 1);
}

std::vector<std::string> advice_on(std::vector<ValidatedRow> rows) {
  Validation validation;
  validation.rows = std::move(rows);
  return link_advice(validation);
}

TEST(Validation, LinksThatWereNotMeasuredAreSuspectedFirst) {
  Validation validation;
  validation.rows = {row_of(1, 1)};
  validation.rows[0].collectives.clear();
  EXPECT_TRUE(link_advice(validation).empty());
  validation.rows[0].predicted /= 2;
  ASSERT_EQ(link_advice(validation).size(), 1U);
  EXPECT_TRUE(test::contains(link_advice(validation)[0], "--calibrate"));
  validation.samples = {{"all_reduce", 1024, 1e-3, 1e-3}};
  EXPECT_TRUE(link_advice(validation).empty());
}

// Latency shows in the quicker third: three of twelve that take half as long again are most of a
// third, and not of a half.
TEST(Validation, LatenciesAreSuspectedByTheQuickerThird) {
  ValidatedRow row;
  for (int i = 1; i <= 12; ++i) {
    KindTime time;
    time.predicted = i * kMillisecond;
    time.measured = time.predicted * (i <= 3 ? 1.5 : 1);
    row.collectives.push_back(time);
  }
  const auto advice = advice_on({row});
  ASSERT_EQ(advice.size(), 1U);
  EXPECT_TRUE(advice[0].starts_with("Small collectives")) << advice[0];
}

TEST(Validation, APredictionHasNoErrorAgainstItself) {
  const ValidatedRow row = row_of(1, 1);
  EXPECT_NEAR(row.error(), 0, 1e-9);
  EXPECT_EQ(row.steps.size(), 3U);
  EXPECT_NEAR(row.p95, row.median, 1e-12);
  int collectives = 0;
  for (const auto& kind : row.kinds) {
    EXPECT_NEAR(kind.measured, kind.predicted, 1e-9) << kind.kind;
    if (kind.kind == "all_reduce") collectives = kind.operations;
  }
  EXPECT_EQ(collectives, 12);
  EXPECT_TRUE(advice_on({row}).empty());
}

// Two steps: half of them is below their mean, not below the slower one.
TEST(Validation, TheMedianOfTwoStepsIsBelowTheir95thPercentile) {
  const plan::Plan plan = plan::make_plan(layers(1), test::cluster_of(2, 1), {});
  const auto executor = run::make_model_executor({test::cluster_of(2, 1), {}, 1});
  run::Timeline timeline = executor->run(plan, {}, 3).timeline;
  timeline.period_ends = {0.010, 0.010 + 0.02577, 0.010 + 0.02577 + 0.02411};
  const ValidatedRow row = compare("two", plan, 0.025, timeline, timeline, 1);
  ASSERT_EQ(row.steps.size(), 2U);
  EXPECT_NEAR(row.median, 0.02494, 1e-12);
  EXPECT_LE(row.median, row.p95);
}

TEST(Validation, AdviceNamesWhatIsOff) {
  const auto latency = advice_on({row_of(2, 1)});
  ASSERT_EQ(latency.size(), 1U);
  EXPECT_TRUE(test::contains(latency[0], "latencies"));
  EXPECT_TRUE(test::contains(latency[0], "100 % longer")) << latency[0];
  const auto bandwidth = advice_on({row_of(1, 0.5)});
  ASSERT_EQ(bandwidth.size(), 1U);
  EXPECT_TRUE(test::contains(bandwidth[0], "bandwidths"));
  EXPECT_TRUE(test::contains(bandwidth[0], "50 % shorter")) << bandwidth[0];
}

TEST(Validation, StepsOfALongPeriodAreItsShare) {
  const Workload workload = layers(3);
  const Cluster cluster = test::cluster_of(2, 1);
  Strategy local;
  local.local_sgd.enabled = true;
  local.local_sgd.period = 4;
  const plan::Plan plan = plan::make_plan(workload, cluster, local);
  ASSERT_EQ(plan.steps, 4);
  const auto timeline = run::make_model_executor({cluster, {}, 1})->run(plan, {}, 3).timeline;
  const ValidatedRow row = compare("local", plan, 1, timeline, timeline, 1);
  EXPECT_NEAR(row.median, (timeline.period_ends[2] - timeline.period_ends[1]) / 4, 1e-12);
}

Validation small_validation() {
  Validation validation;
  validation.scenario = "small";
  validation.workload = "layers";
  validation.cluster = "four";
  validation.backend = "gloo";
  validation.executor = "model";
  validation.baseline = "each alone";
  validation.hardware = "test";
  validation.ranks = 4;
  validation.rows = {row_of(1, 1)};
  validation.rows[0].values_match = true;
  return validation;
}

TEST(Validation, ReportsAreReadBack) {
  const Scratch scratch;
  const Validation validation = small_validation();
  test::write_text(scratch.path("v.json"), test::json_of(validation));
  const LiveFile file = read_validation(scratch.path("v.json"));
  ASSERT_EQ(file.rows.size(), 1U);
  EXPECT_EQ(file.rows[0].strategy, "each alone");
  EXPECT_DOUBLE_EQ(file.rows[0].predicted, validation.rows[0].predicted);
  EXPECT_EQ(file.rows[0].values_match, true);
  EXPECT_EQ(table_of(file).predicted.size(), 1U);
  const std::string table = test::table_of(std::vector{file, file});
  EXPECT_TRUE(test::contains(table, "2 rows: median error 0.0 %")) << table;
}

TEST(Validation, BytesThatNobodyCountedAreNoZero) {
  Validation validation = small_validation();
  EXPECT_TRUE(test::contains(test::table_of(validation), "not counted"));
  EXPECT_TRUE(test::contains(test::json_of(validation), "\"bytes_sent\": null"));
  validation.rows[0].bytes_sent = 1024;
  EXPECT_TRUE(test::contains(test::table_of(validation), "1.000 KiB"));
}

TEST(Validation, AWrongValueIsShouted) {
  Validation validation = small_validation();
  validation.rows[0].values_match = false;
  EXPECT_TRUE(test::contains(test::table_of(validation), "WRONG VALUES: 'each alone'"));
}

TEST(Validation, OtherFilesAreRefused) {
  const Scratch scratch;
  for (const char* wrong : {"[]", "{}", R"({"scenario": 1})",
                            R"({"scenario": "s", "cluster": "c", "backend": "b", "hardware": "h",
                                "ranks": 2, "rows": [{"strategy": "x", "predicted_s": 0}]})"}) {
    test::write_text(scratch.path("w.json"), wrong);
    EXPECT_THROW(read_validation(scratch.path("w.json")), InputError) << wrong;
  }
}

}  // namespace
}  // namespace syncline::measure
