// From the traces that jobs left behind to rows that replay them: the whole way of `import`.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/input/document.h"
#include "core/job/format.h"
#include "core/job/scenario_of.h"
#include "core/measure/study.h"
#include "core/run/executor.h"
#include "tests/support/said.h"
#include "tests/support/scratch.h"

namespace syncline::job {
namespace {

const std::string kTraces = SYNCLINE_SOURCE_DIR "/tests/data/kineto/";

std::vector<std::string> dlrm_ranks() {
  std::vector<std::string> files;
  for (int rank = 0; rank < 8; ++rank) {
    files.push_back(kTraces + "dlrm_8xV100_rank" + std::to_string(rank) + ".json.gz");
  }
  return files;
}

measure::Report evaluated(const Json& scenario) {
  measure::StudyOptions study;
  study.make_executor = run::make_model_executor;
  return measure::run_study(input::document_from_text("job.json", scenario.dump()), study);
}

// Each step of the job by itself, with the job's own configuration.
void expect_replayed(const std::vector<std::string>& files) {
  const Observed all = read_job(files);
  for (std::size_t n = 0; n < all.ranks.front().steps.size(); ++n) {
    Observed one = all;
    for (Rank& rank : one.ranks) rank.steps = {rank.steps.at(n)};
    const measure::Report report = evaluated(scenario_of(one, {}).scenario);
    const measure::Row& row = report.rows.front();
    const Seconds measured = one.ranks.front().steps.front().gpu;
    EXPECT_EQ(row.strategy, kAsItRan);
    EXPECT_NEAR(row.metrics.step_time / measured, 1, 0.01) << "step " << n;
    EXPECT_LE(row.step.low, measured);
    EXPECT_GE(row.step.high, measured);
  }
}

TEST(Replay, ResNet50OnTwoA100) {
  expect_replayed({kTraces + "resnet50_ddp_2xA100_rank0.json.gz"});
}
TEST(Replay, DlrmOnEightV100) { expect_replayed(dlrm_ranks()); }

TEST(Replay, WhatTheNetworkDoesNotExplainIsLateRanks) {
  const Imported imported = scenario_of(read_job(dlrm_ranks()), {});
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
  const auto import =
      test::say({"import", kTraces + "resnet50_ddp_2xA100_rank0.json.gz", "-o", job});
  EXPECT_EQ(import.code, 0) << import.err;
  EXPECT_NE(import.out.find("torch's default: 1 MiB, then 25 MiB"), std::string::npos);
  EXPECT_NE(import.out.find("syncline tune " + job + " --emit pytorch"), std::string::npos);
  const auto run = test::say({"run", job, "--verbose"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.out.find("bound by the host"), std::string::npos) << "what import minded";
  EXPECT_NE(run.out.find("usually stands"), std::string::npos) << "what import assumed";
  for (const char* verb : {"run", "check", "explain"}) {
    const Json said = Json::parse(test::say({verb, job, "--format", "json"}).out);
    EXPECT_NE(said.at("remarks").dump().find("bound by the host"), std::string::npos) << verb;
  }
  EXPECT_NE(test::say({"run", job, "--format", "csv"}).err.find("bound by the host"),
            std::string::npos);
  const auto tune = test::say({"tune", job, "--emit", "pytorch", "--budget", "300"});
  EXPECT_EQ(tune.code, 0) << tune.err;
  EXPECT_NE(tune.out.find("\"gradient_as_bucket_view\": true"), std::string::npos) << tune.out;
  const Json answer = Json::parse(
      test::say({"import", kTraces + "resnet50_ddp_2xA100_rank0.json.gz", "--format", "json"}).out);
  EXPECT_EQ(answer.at("typical").at("exchanges").size(), 7U);
  EXPECT_EQ(answer.at("buckets").at("explained"), true);
  EXPECT_EQ(answer.at("typical").at("all_reduced_bytes"),
            answer.at("typical").at("gradient_bytes"));
  EXPECT_NE(import.out.find("97.49 MiB; all-reduced 97.49 MiB\n"), std::string::npos) << import.out;
  const Json& views = answer.at("rows").at(1);
  EXPECT_EQ(views.at("strategy"), "gradients as views");
  EXPECT_LT(views.at("speedup_low"), 1.01);
  EXPECT_GT(views.at("speedup_high"), views.at("speedup"));
  EXPECT_NE(import.out.find("gain, 80 %"), std::string::npos);
}

TEST(Replay, AClusterThatIsGivenTakesThePlaceOfWhatIsAssumed) {
  const test::Scratch scratch;
  const std::string cluster = scratch.path("cluster.json");
  test::write_text(cluster, R"({"name": "mine", "nodes": 2, "gpus_per_node": 1,
      "inter": {"latency_us": 20, "bandwidth_gbps": 10}})");
  const auto said = test::say({"import", kTraces + "resnet50_ddp_2xA100_rank0.json.gz", "--cluster",
                               cluster, "--batch", "64", "--format", "json"});
  ASSERT_EQ(said.code, 0) << said.err;
  const Json scenario = Json::parse(said.out).at("scenario_file");
  EXPECT_EQ(scenario.at("cluster").at("name"), "mine");
  EXPECT_EQ(scenario.at("workload").at("batch"), 64);
  EXPECT_TRUE(scenario.contains("published"));
  test::write_text(cluster, R"({"name": "larger", "nodes": 8, "gpus_per_node": 1,
      "inter": {"latency_us": 20, "bandwidth_gbps": 10}})");
  const auto larger = test::say({"import", kTraces + "resnet50_ddp_2xA100_rank0.json.gz",
                                 "--cluster", cluster, "--format", "json"});
  ASSERT_EQ(larger.code, 0) << larger.err;
  EXPECT_FALSE(Json::parse(larger.out).at("scenario_file").contains("published"));
  EXPECT_NE(larger.out.find("ran on 2 ranks, the cluster has 8"), std::string::npos);
  EXPECT_EQ(test::say({"import", scratch.path("absent.json")}).code, 2);
  EXPECT_EQ(test::say({"import", cluster}).code, 2);
}

}  // namespace
}  // namespace syncline::job
