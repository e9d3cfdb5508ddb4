// Every column of the 21 measured cases, to the printed digits.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "core/plan/fusion.h"
#include "formats/input/document.h"
#include "studies/tune/thresholds.h"
#include "tests/support/fusion_rules.h"
#include "tests/support/small_plans.h"
#include "tests/support/traces.h"

namespace syncline::test {
namespace {

// The figure with as many decimals as the CSV prints, without trailing zeros.
std::string printed(double value, int decimals) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  std::string digits = text;
  while (digits.back() == '0' && digits[digits.size() - 2] != '.') digits.pop_back();
  return digits == "-0.0" ? "0.0" : digits;
}

class OracleTrace : public testing::TestWithParam<TraceCase> {
 protected:
  OracleTrace()
      : row(GetParam()),
        workload(input::parse_scenario(trace_document(row)).workload),
        problem(step_trace(workload).gradients),
        affine{row.number("alpha"), row.number("beta")},
        cost(run_cost(problem, affine)),
        optimum(best_fusion(problem, affine)),
        tensors(pointers_to(workload.tensors)),
        candidates(indices_of(workload.tensors)) {}

  std::string percent(const std::vector<std::size_t>& ends) const {
    return printed(100 * (finish_of(problem.ready, ends, cost) / optimum.finish - 1), 2);
  }

  void expect_threshold(Fusion::Close close, const char* excess, const char* buckets) const {
    const auto all = tune::size_thresholds(tensors, candidates, tune::by_size(0, close));
    const auto ends = [&](Bytes size) {
      return run_ends(plan::fuse(tensors, candidates, tune::by_size(size, close)));
    };
    const auto best = ends(best_threshold(
        all, [&](Bytes size) { return finish_of(problem.ready, ends(size), cost); }));
    EXPECT_EQ(percent(best), row.text(excess)) << excess;
    EXPECT_EQ(std::to_string(best.size()), row.text(buckets)) << buckets;
  }

  TraceCase row;
  Workload workload;
  FusionProblem problem;
  AffineCost affine;
  tune::RunCost cost;
  tune::FusionPlan optimum;
  std::vector<const Tensor*> tensors;
  std::vector<int> candidates;
};

TEST_P(OracleTrace, IsReproducedToThePrintedDigits) {
  EXPECT_EQ(printed(problem.ready.back() / kMillisecond, 3), row.text("backward_ms"));
  EXPECT_EQ(printed(fusion_lower_bound(problem, affine) / kMillisecond, 3),
            row.text("lower_bound_ms"));
  EXPECT_EQ(printed(optimum.finish / kMillisecond, 3), row.text("optimum_ms"));
  const tune::FusionPlan slow = tune::best_fusion(problem.ready, cost);
  EXPECT_EQ(printed(slow.finish / kMillisecond, 3), row.text("optimum_ms"));
  EXPECT_EQ(std::to_string(slow.ends.size()), row.text("opt_buckets"));

  for (const auto& rule : common_rules()) {
    const auto ends = run_ends(plan::fuse(tensors, candidates, rule.fusion));
    EXPECT_EQ(percent(ends), row.text(std::string(rule.name) + "_pct")) << rule.name;
    EXPECT_EQ(std::to_string(ends.size()), row.text("n_" + std::string(rule.name))) << rule.name;
  }
  const auto merged = mg_wfbp(problem, affine);
  EXPECT_EQ(percent(merged), row.text("mgwfbp_pct"));
  EXPECT_EQ(std::to_string(merged.size()), row.text("n_mgwfbp"));

  expect_threshold(Fusion::Close::kBefore, "best_thr_before_pct", "n");
  expect_threshold(Fusion::Close::kAfter, "best_thr_after_pct", "n_after");
}

INSTANTIATE_TEST_SUITE_P(Traces, OracleTrace, testing::ValuesIn(trace_cases()));

TEST(OracleTraces, AreTwentyOne) { EXPECT_EQ(trace_cases().size(), 21u); }

}  // namespace
}  // namespace syncline::test
