// From the traces that jobs left behind to rows that replay them: the whole way of `import`.
#include <gtest/gtest.h>

#include "imports/scenario_of.h"
#include "tests/support/jobs.h"
#include "tests/support/said.h"

namespace syncline::job {
namespace {

using test::contains;
using test::kResNet50;

// Each step of the job by itself, with the job's own configuration.
void expect_replayed(const std::vector<std::string>& files) {
  const Observed all = read_job(files);
  for (std::size_t n = 0; n < all.ranks.front().steps.size(); ++n) {
    Observed one = all;
    for (Rank& rank : one.ranks) rank.steps = {rank.steps.at(n)};
    const measure::Report report = test::evaluated(scenario_of(one, {}).scenario);
    const measure::Row& row = report.rows.front();
    const Seconds measured = one.ranks.front().steps.front().gpu;
    EXPECT_EQ(row.strategy, kAsItRan);
    EXPECT_NEAR(row.metrics.step_time / measured, 1, 0.01) << "step " << n;
    EXPECT_LE(row.step.low, measured);
    EXPECT_GE(row.step.high, measured);
  }
}

TEST(Replay, ResNet50OnTwoA100) { expect_replayed({kResNet50}); }
TEST(Replay, DlrmOnEightV100) { expect_replayed(test::dlrm_files()); }

TEST(Replay, TimeBeyondTheNetworksIsLateRanks) {
  const Imported imported = scenario_of(read_job(test::dlrm_files()), {});
  const double waiting =
      imported.scenario.at("cluster").at("device").at("data_parallel_overhead_us");
  // The last all-reduce is exposed for 480 us and takes 69 once all ranks are there.
  EXPECT_GT(waiting, 380);
  EXPECT_LE(waiting, 480);
  EXPECT_EQ(imported.scenario.at("published")[0].at("use"), "calibrated");
  EXPECT_TRUE(imported.scenario.at("cluster").contains("calibration"));
}

TEST(Replay, TheVerbWritesWhatRunAndTuneTake) {
  const test::Scratch scratch;
  const std::string job = scratch.path("job.json");
  const auto import = test::say({"import", kResNet50, "-o", job});
  EXPECT_EQ(import.code, 0) << import.err;
  EXPECT_TRUE(contains(import.out, "torch's default: 1 MiB, then 25 MiB"));
  EXPECT_TRUE(contains(import.out, "syncline tune " + job + " --emit pytorch"));
  const auto run = test::say({"run", job, "--verbose"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_TRUE(contains(run.out, "bound by the host")) << "what import minded";
  EXPECT_TRUE(contains(run.out, "the usual node")) << "what import assumed";
  for (const char* verb : {"run", "check", "explain"}) {
    const Json said = Json::parse(test::say({verb, job, "--format", "json"}).out);
    EXPECT_TRUE(contains(said.at("remarks").dump(), "bound by the host")) << verb;
  }
  EXPECT_TRUE(contains(test::say({"run", job, "--format", "csv"}).err, "bound by the host"));
  const auto tune = test::say({"tune", job, "--emit", "pytorch", "--budget", "300"});
  EXPECT_EQ(tune.code, 0) << tune.err;
  EXPECT_TRUE(contains(tune.out, "\"gradient_as_bucket_view\": true")) << tune.out;
  const Json answer = Json::parse(test::say({"import", kResNet50, "--format", "json"}).out);
  EXPECT_EQ(answer.at("typical").at("exchanges").size(), 7U);
  EXPECT_EQ(answer.at("buckets").at("explained"), true);
  EXPECT_EQ(answer.at("typical").at("all_reduced_bytes"),
            answer.at("typical").at("gradient_bytes"));
  EXPECT_TRUE(contains(import.out, "97.49 MiB; all-reduced 97.49 MiB\n")) << import.out;
  const Json& views = answer.at("rows").at(1);
  EXPECT_EQ(views.at("strategy"), "gradients as views");
  EXPECT_LT(views.at("speedup_low"), 1.01);
  EXPECT_GT(views.at("speedup_high"), views.at("speedup"));
  EXPECT_TRUE(contains(import.out, "gain, 80 %"));
}

TEST(Replay, AGivenClusterReplacesTheAssumedOne) {
  const test::Scratch scratch;
  const std::string cluster = scratch.path("cluster.json");
  test::write_text(cluster, R"({"name": "mine", "nodes": 2, "gpus_per_node": 1,
      "inter": {"latency_us": 20, "bandwidth_gbps": 10}})");
  const auto said =
      test::say({"import", kResNet50, "--cluster", cluster, "--batch", "64", "--format", "json"});
  ASSERT_EQ(said.code, 0) << said.err;
  const Json scenario = Json::parse(said.out).at("scenario_file");
  EXPECT_EQ(scenario.at("cluster").at("name"), "mine");
  EXPECT_EQ(scenario.at("workload").at("batch"), 64);
  EXPECT_TRUE(scenario.contains("published"));
  test::write_text(cluster, R"({"name": "larger", "nodes": 8, "gpus_per_node": 1,
      "inter": {"latency_us": 20, "bandwidth_gbps": 10}})");
  const auto larger = test::say({"import", kResNet50, "--cluster", cluster, "--format", "json"});
  ASSERT_EQ(larger.code, 0) << larger.err;
  EXPECT_FALSE(Json::parse(larger.out).at("scenario_file").contains("published"));
  EXPECT_TRUE(contains(larger.out, "ran on 2 ranks, the cluster has 8"));
  EXPECT_EQ(test::say({"import", scratch.path("absent.json")}).code, 2);
  EXPECT_EQ(test::say({"import", cluster}).code, 2);
}

}  // namespace
}  // namespace syncline::job
