// A study that is interrupted ends with what it has.
#include "core/measure/study.h"

#include <gtest/gtest.h>

#include "core/run/model_executor.h"
#include "tests/support/full_scenario.h"

namespace syncline::measure {
namespace {

input::Document document_of(int points) {
  Json root = Json::parse(R"({"name": "s", "workload": {"name": "w", "tensors":
      [{"name": "t", "shape": [1000], "backward_us": 10}]}, "strategies": [{"name": "plain"}],
      "cluster": {"name": "c", "nodes": 2, "gpus_per_node": 1,
                  "inter": {"latency_us": 10, "bandwidth_gbps": 10}}})");
  for (int i = 0; i < points; ++i) root["sweep"]["cluster.inter.bandwidth_gbps"].push_back(i + 1);
  return input::document_from_text("s.json", root.dump());
}

// Wherever it comes, the next question is the last one.
TEST(Study, EndsAtOnceWhereItIsInterrupted) {
  constexpr int kPoints = 20;
  const input::Document document = document_of(kPoints);
  for (int at = 0; at < 3 * kPoints; ++at) {
    int asked = 0;
    bool judged = false;
    StudyOptions options;
    options.make_executor = run::make_model_executor;
    options.judged = [&] { judged = true; };
    options.interrupted = [&] { return ++asked > at; };
    const Report report = run_study(document, options);
    const bool whole = report.rows.size() == kPoints;
    EXPECT_EQ(report.complete, whole) << at;
    EXPECT_EQ(judged, at > kPoints) << at << ": points are judged one by one, asking between";
    EXPECT_TRUE(whole || asked <= at + 2) << at;
  }
}

}  // namespace
}  // namespace syncline::measure
