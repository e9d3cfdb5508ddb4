// What a job left behind, as a scenario: it is read, and its row replays the step.
#include "imports/scenario_of.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/support/jobs.h"

namespace syncline::job {
namespace {

// A job of 2 ranks on a network that hides everything but the last exchange.
Observed job_of(std::mt19937& random, bool views) {
  Observed job;
  job.name = "small job";
  job.file = "/tmp/somewhere/trace.json";
  job.format = "kineto";
  job.world_size = 2;
  job.bucket_views = views;
  job.ranks.resize(1);
  for (int n = 0; n < 3; ++n) {
    Step& step = job.ranks[0].steps.emplace_back();
    step.number = n + 1;
    step.forward = 0.030;
    step.update = 0.004;
    step.host_gap = 0.002;
    step.broadcast = 0.003;
    ObservedExchange all;
    all.kind = "all_reduce";
    for (int i = 0; i < 30; ++i) {
      Gradient gradient;
      gradient.elements = 1 + static_cast<std::int64_t>(random() % 300000);
      gradient.wait = 1e-6 * static_cast<double>(100 + random() % 3000);
      if (!views) {
        gradient.copy_in = 1e-5;
        gradient.copy_out = 2e-5;
      }
      step.backward += gradient.wait + gradient.copy_in;
      step.copy_in += gradient.copy_in;
      step.copy_out += gradient.copy_out;
      step.gradients.push_back(gradient);
      all.elements += gradient.elements;
      all.gradients.push_back(i);
    }
    step.copy_kernels = step.copy_out / 4;
    step.exchanges.push_back(all);
    step.gpu = step.broadcast + step.forward + step.backward + step.copy_out + step.host_gap +
               step.update + 0.001 * n;
  }
  return job;
}

const Json kFast = Json::parse(R"({"name": "fast", "nodes": 2, "gpus_per_node": 1,
    "inter": {"latency_us": 0.001, "bandwidth_gbps": 1000000}})");

TEST(ScenarioOf, TheRowReplaysTheStep) {
  std::mt19937 random(3);
  for (const bool views : {false, true}) {
    for (int round = 0; round < 5; ++round) {
      const Observed job = job_of(random, views);
      const Imported imported = scenario_of(job, {.cluster = kFast});
      const measure::Report report = test::evaluated(imported.scenario);
      ASSERT_FALSE(report.rows.empty());
      const measure::Row& row = report.rows.front();
      EXPECT_EQ(row.strategy, kAsItRan);
      const Step& step = typical_step(job.ranks[0]);
      EXPECT_NEAR(row.metrics.step_time, step.gpu - 0.001 * (step.number - 1), 2e-4);
      ASSERT_TRUE(row.error_percent.has_value());
      EXPECT_LT(std::abs(*row.error_percent), 4);
    }
  }
}

TEST(ScenarioOf, ViewsSaveTheCopiesAndTheIntervalSaysHowSure) {
  std::mt19937 random(4);
  const Observed job = job_of(random, false);
  const measure::Report report = test::evaluated(scenario_of(job, {.cluster = kFast}).scenario);
  const auto views = std::ranges::find(report.rows, "gradients as views", &measure::Row::strategy);
  ASSERT_NE(views, report.rows.end());
  const Step& step = typical_step(job.ranks[0]);
  EXPECT_NEAR(report.rows.front().metrics.step_time - views->metrics.step_time,
              step.copy_in + step.copy_out, 2e-4);
  // The copies' kernels took a quarter of copy_out: it may be that nothing more is saved.
  EXPECT_LT(report.rows.front().step.low, views->metrics.step_time + step.copy_out);
  EXPECT_LT(views->gain.low, 1.01);
}

TEST(ScenarioOf, MissingFactsAreAssumedAndListed) {
  std::mt19937 random(6);
  Observed job = job_of(random, false);
  job.world_size = 16;
  job.devices_a_node = 8;
  job.device = "Unheard-of Accelerator 3";
  const Imported imported = scenario_of(job, {});
  EXPECT_EQ(imported.scenario.at("cluster").at("nodes"), 2);
  EXPECT_EQ(imported.scenario.at("cluster").at("gpus_per_node"), 8);
  EXPECT_GE(imported.assumed.size(), 3U);
  EXPECT_FALSE(test::evaluated(imported.scenario).rows.empty());
  // Ranks that do not fill the hosts.
  job.world_size = 12;
  EXPECT_EQ(scenario_of(job, {}).scenario.at("cluster").at("gpus_per_node"), 6);
}

Bytes bytes_in(const Json& scenario) {
  return gradient_bytes(test::scenario_in(scenario).workload);
}

bool assumes(const Imported& imported, const std::string& part) {
  return test::any_contains(imported.assumed, part);
}

TEST(ScenarioOf, ExtraElementsOfABucketTravelToo) {
  std::mt19937 random(7);
  Observed job = job_of(random, false);
  const Bytes told = gradient_bytes(typical_step(job.ranks[0]));
  EXPECT_EQ(bytes_in(scenario_of(job, {.cluster = kFast}).scenario), told);
  EXPECT_FALSE(assumes(scenario_of(job, {.cluster = kFast}), "the buckets carry"));
  for (Step& step : job.ranks[0].steps) step.exchanges[0].elements += told / 8;
  const Imported imported = scenario_of(job, {.cluster = kFast});
  EXPECT_EQ(bytes_in(imported.scenario), told + 4 * (told / 8));
  EXPECT_TRUE(assumes(imported, "(33 % of the traffic) travel too")) << imported.assumed.front();
  EXPECT_TRUE(imported.rule.explains) << imported.rule.words;
  const measure::Report report = test::evaluated(imported.scenario);
  EXPECT_LT(std::abs(report.rows.front().error_percent.value()), 4);
}

TEST(ScenarioOf, GradientsWithoutACollectiveAreReported) {
  std::mt19937 random(7);
  Observed job = job_of(random, false);
  for (Step& step : job.ranks[0].steps) {
    step.exchanges[0].gradients.pop_back();
    step.exchanges[0].elements -= step.gradients.back().elements;
  }
  EXPECT_TRUE(assumes(scenario_of(job, {.cluster = kFast}), "are in no collective"));
}

Json on(const std::string& device) {
  Json cluster = kFast;
  cluster["device"] = device;
  return cluster;
}

// fp32: 19.5 against 15.7 TFLOP/s, 1,555 against 900 GB/s.
TEST(ScenarioOf, TimesOfAnotherDeviceAreRescaledWithAnInterval) {
  std::mt19937 random(8);
  Observed job = job_of(random, true);
  job.device = "NVIDIA A100-SXM4-40GB";
  const double flops = 19.5 / 15.7;
  const double memory = 1555.0 / 900;
  const double factor = std::sqrt(flops * memory);
  const Imported slower = scenario_of(job, {.cluster = on("v100-sxm")});
  const Json& workload = slower.scenario.at("workload");
  const Step& step = typical_step(job.ranks[0]);
  EXPECT_NEAR(workload.at("forward_ms"), 1e3 * step.forward * factor, 1e-3);
  EXPECT_NEAR(workload.at("tensors")[3].at("backward_us"), 1e6 * step.gradients[3].wait * factor,
              1e-2);
  EXPECT_NEAR(workload.at("host_gap_ms"), 1e3 * step.host_gap, 1e-6);
  EXPECT_TRUE(assumes(slower, "the cluster has NVIDIA V100 SXM2 16 GB: computation is rescaled"));
  EXPECT_FALSE(slower.scenario.contains("published"));
  const measure::Row row = test::evaluated(slower.scenario).rows.front();
  const Seconds computed = step.forward + step.backward + step.update;
  const Seconds others = step.broadcast + step.host_gap;
  EXPECT_LT(row.step.low, flops * computed + others);
  EXPECT_GT(row.step.high, memory * computed + others);

  job.device = "Tesla V100-SXM2-16GB";
  const Imported faster = scenario_of(job, {.cluster = on("a100-sxm-40gb")});
  EXPECT_NEAR(faster.scenario.at("workload").at("forward_ms"), 1e3 * step.forward / factor, 1e-3);
}

TEST(ScenarioOf, TimesOfTheSameDeviceStay) {
  std::mt19937 random(8);
  Observed job = job_of(random, true);
  job.device = "NVIDIA A100-SXM4-40GB";
  const Imported same = scenario_of(job, {.cluster = on("a100-sxm-40gb")});
  EXPECT_NEAR(same.scenario.at("workload").at("forward_ms"), 30, 1e-6);
  EXPECT_FALSE(assumes(same, "rescaled"));
  EXPECT_TRUE(same.scenario.contains("published"));
  const Imported unnamed = scenario_of(job, {.cluster = kFast});
  EXPECT_TRUE(assumes(unnamed, "the cluster names no device"));
  job.device = "";
  EXPECT_TRUE(assumes(scenario_of(job, {.cluster = on("v100-sxm")}), "does not tell on which"));
}

TEST(ScenarioOf, JobsThatCannotBeRescaledAreRefused) {
  std::mt19937 random(8);
  Observed job = job_of(random, true);
  job.device = "Unheard-of Accelerator 3";
  EXPECT_THROW(scenario_of(job, {.cluster = on("v100-sxm")}), InputError);
  job.device = "NVIDIA A100-SXM4-40GB";
  Json unknown = kFast;
  unknown["device"] = {{"name", "Unheard-of Accelerator 3"}};
  EXPECT_THROW(scenario_of(job, {.cluster = unknown}), InputError);
  unknown["device"] = {{"name", "own"}, {"tflops", 14}, {"memory_gbytes_per_s", 1000}};
  EXPECT_TRUE(assumes(scenario_of(job, {.cluster = unknown}), "the cluster has own"));
}

TEST(ScenarioOf, NoGradientNoScenario) {
  Observed job;
  job.file = "trace.json";
  EXPECT_THROW(scenario_of(job, {}), InputError);
}

}  // namespace
}  // namespace syncline::job
