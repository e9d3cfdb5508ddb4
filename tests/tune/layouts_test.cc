// The best layout of a job: by brute force over every product of sizes, with the scenario's own
// reader and the ordinary costs; and by bounds that hold.
#include "studies/layouts/layouts.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/plan/pipeline.h"
#include "formats/dialect/write.h"
#include "formats/input/document.h"
#include "studies/tune/evaluator.h"
#include "tests/support/full_scenario.h"
#include "tests/support/text.h"

namespace syncline::tune {
namespace {

using test::contains;

// A Llama of four layers on two nodes of four GPUs.
Json llama(double memory_gigabytes = 80) {
  Json scenario = Json::parse(R"({
    "name": "small",
    "workload": {"name": "w", "batch": 1, "micro_batches": 8,
                 "operators": {"architecture": "llama", "dtype": "bf16", "sequence": 512,
                               "shape": {"layers": 4, "hidden": 1024, "heads": 8, "kv_heads": 4,
                                         "inner": 2816, "words": 8000}}},
    "cluster": {"name": "c", "nodes": 2, "gpus_per_node": 4,
                "intra": {"latency_us": 3, "bandwidth_gbps": 1200},
                "inter": {"latency_us": 10, "bandwidth_gbps": 100},
                "device": {"name": "D", "tflops": 20, "memory_gbytes_per_s": 1500,
                           "half_tflops": 150, "memory_gbytes": 80}},
    "strategies": [{"name": "m", "dialect": "megatron",
                    "config": {"use-distributed-optimizer": true, "overlap-grad-reduce": true}},
                   {"name": "other", "dialect": "megatron", "config": {}}],
    "baseline": "m"})");
  scenario["cluster"]["device"]["memory_gbytes"] = memory_gigabytes;
  return scenario;
}

Json mixture() {
  Json scenario = llama();
  Json& shape = scenario["workload"]["operators"]["shape"];
  shape["experts"] = 4;
  shape["expert_inner"] = 512;
  return scenario;
}

Layouts layouts_of(const Json& scenario, TuneOptions options = {},
                   const std::vector<std::int64_t>& batches = {}) {
  options.top = 10;
  return tune_layouts(input::document_of("small", scenario), {.layouts = true, .batches = batches},
                      options);
}

Layouts exhaustive(const Json& scenario, const std::vector<std::int64_t>& batches = {}) {
  TuneOptions options;
  options.method = TuneOptions::Method::kExhaustive;
  return layouts_of(scenario, options, batches);
}

std::vector<std::string> words_of(const Layouts& layouts) {
  std::vector<std::string> words;
  for (const RankedLayout& one : layouts.ranking) words.push_back(one.words());
  return words;
}

// Every product of sizes up to eight ranks, whether it divides anything or not.
double least_of_all(const Json& scenario, std::size_t& tried) {
  double least = 1e300;
  const int ranks = 8;
  for (const int tensor : {1, 2, 4, 8}) {
    for (const int context : {1, 2, 4, 8}) {
      for (const int pipeline : {1, 2, 3, 4, 5, 6, 8}) {
        for (const int chunks : {1, 2, 4}) {
          for (const int expert : {1, 2, 4, 8}) {
            const int replicas = ranks / (tensor * context * pipeline);
            if (replicas == 0 || replicas * tensor * context * pipeline != ranks) continue;
            const int samples = 8 * ranks;
            if (chunks > 1 && (samples / replicas) % pipeline != 0) continue;
            Json own = scenario;
            own["strategies"].erase(1);
            own["workload"]["micro_batches"] = samples / replicas;
            own["workload"]["parallel"] = {{"tensor", tensor},         {"sequence", tensor > 1},
                                           {"context", context},       {"pipeline", pipeline},
                                           {"virtual_stages", chunks}, {"expert", expert}};
            try {
              const Scenario read = test::parsed(own);
              const Strategy& strategy = read.strategies.front();
              const auto memory = measure::memory_of(read, strategy);
              if (memory.total() > memory.available) continue;
              Evaluator model(read);
              const Seconds step = model.step_time(strategy);
              EXPECT_GE(step * (1 + 1e-9), plan::least_step(read.workload))
                  << own["workload"]["parallel"];
              least = std::min(least, step);
              ++tried;
            } catch (const InputError&) {
              continue;
            }
          }
        }
      }
    }
  }
  return least;
}

TEST(Layouts, TheBestIsThatOfBruteForce) {
  for (const Json& scenario : {llama(), mixture(), llama(0.45), llama(0.3)}) {
    std::size_t tried = 0;
    const double least = least_of_all(scenario, tried);
    const Layouts found = layouts_of(scenario);
    ASSERT_FALSE(found.ranking.empty());
    EXPECT_NEAR(found.ranking.front().metrics.step_time / least, 1, 1e-9)
        << found.ranking.front().words();
    EXPECT_EQ(found.fitting, tried);
    EXPECT_TRUE(found.complete);
  }
}

TEST(Layouts, BoundsRuleOutNoneOfTheBest) {
  for (const char* schedule : {"1f1b", "gpipe", "zero_bubble"}) {
    for (Json scenario : {llama(), mixture()}) {
      scenario["workload"]["parallel"] = {{"pipeline", 2}, {"schedule", schedule}};
      const Layouts pruned = layouts_of(scenario, {}, {2});
      const Layouts all = exhaustive(scenario, {2});
      EXPECT_EQ(words_of(pruned), words_of(all)) << schedule;
      EXPECT_EQ(all.evaluated, all.fitting);
      EXPECT_LT(pruned.evaluated, all.evaluated) << schedule;
    }
  }
}

TEST(Layouts, ProcessesFindTheSame) {
  TuneOptions options;
  options.parallel_map = run::over_processes(2);
  const Layouts two = layouts_of(mixture(), options);
  const Layouts one = layouts_of(mixture());
  EXPECT_EQ(words_of(one), words_of(two));
  EXPECT_EQ(one.fitting, two.fitting);
}

// The samples of a step stay what they are, the strategy too.
TEST(Layouts, KeepTheTrainingAsItIs) {
  const Layouts found = exhaustive(llama(), {2, 4});
  EXPECT_EQ(found.strategy, "m");
  bool larger = false;
  for (const RankedLayout& one : found.ranking) {
    EXPECT_EQ(one.batch * one.micro_batches * one.replicas, 64);
    larger |= one.batch > 1;
    const measure::Bottleneck& bottleneck = one.bottleneck;
    EXPECT_DOUBLE_EQ(bottleneck.step, one.metrics.step_time);
    EXPECT_GT(one.gain.high, one.gain.low);
  }
  EXPECT_TRUE(larger);
  EXPECT_EQ(found.given.words(), "dp=8, 8 micro-batches of 1");
}

// Each of a size that some of them exceed: those are counted, not evaluated; where all do, the
// smallest is named.
// What a job hides beside its products, and how it exchanges sequences, holds in other layouts too.
TEST(Layouts, KeepTheJobsWorkOutsideItsProducts) {
  Json scenario = llama();
  scenario["workload"]["parallel"] = {{"tensor", 2},
                                      {"context", 2},
                                      {"sequence", true},
                                      {"overlap_tensor", true},
                                      {"context_exchange", "all_to_all"}};
  int cut = 0;
  for (const RankedLayout& one : exhaustive(scenario).ranking) {
    const Json& parallel = one.parallel;
    EXPECT_EQ(parallel.contains("overlap_tensor"), parallel.contains("sequence")) << parallel;
    EXPECT_EQ(parallel.contains("context_exchange"), parallel.contains("context")) << parallel;
    cut += parallel.contains("sequence") || parallel.contains("context");
  }
  EXPECT_GT(cut, 0);
}

TEST(Layouts, MemoryRulesOut) {
  const Layouts all = exhaustive(llama());
  EXPECT_EQ(all.too_large, 0u);
  const Layouts some = exhaustive(llama(0.3));
  EXPECT_GT(some.too_large, 0u);
  EXPECT_EQ(some.fitting + some.too_large, all.fitting);
  for (const RankedLayout& one : some.ranking) EXPECT_LE(one.memory.total(), 0.3e9);
  const Layouts none = layouts_of(llama(0.01));
  EXPECT_TRUE(none.ranking.empty());
  EXPECT_TRUE(contains(none.least, " GB of a GPU")) << none.least;
  EXPECT_TRUE(contains(none.least, "0.01")) << none.least;
}

TEST(Layouts, AreRefusedByTheirNumbers) {
  const auto refusal = [](const Json& parallel) {
    Json scenario = mixture();
    scenario["workload"]["parallel"] = parallel;
    return test::input_error([&] { layouts_of(scenario); });
  };
  EXPECT_TRUE(contains(refusal({{"tensor", 3}}), "tensor 3 x context 1 x pipeline 1 is 3 ranks"));
  EXPECT_TRUE(contains(refusal({{"tensor", 4}, {"context", 4}}), "is 16 ranks"));
  EXPECT_TRUE(contains(refusal({{"pipeline", 8}}), "4 layers"));
  EXPECT_TRUE(contains(refusal({{"expert", 8}}), "8 ranks cannot share 4 experts"));
  EXPECT_TRUE(contains(refusal({{"expert", 4}, {"pipeline", 4}}), "expert 4 x expert_tensor 1"));
}

// Times that were measured are those of one layout.
TEST(Layouts, NeedTimesThatFollowThem) {
  Json measured = llama();
  measured["workload"]["forward_ms"] = 3;
  EXPECT_TRUE(contains(test::input_error([&] { layouts_of(measured); }),
                       "need a model by operators.architecture"));
}

// What was seen until then is an answer.
TEST(Layouts, AnInterruptionLeavesWhatWasFound) {
  TuneOptions options;
  int asked = 0;
  options.interrupted = [&] { return ++asked > 1; };
  const Layouts found = layouts_of(mixture(), options, {2, 4});
  EXPECT_FALSE(found.complete);
  EXPECT_FALSE(found.ranking.empty());
  EXPECT_LE(found.evaluated, 10u);
}

// Written as Megatron's flags and read back beside that layout, the best takes as long.
TEST(Layouts, TheBestIsWrittenAsFlags) {
  const Json json = llama();
  const Layouts layouts = layouts_of(json);
  ASSERT_FALSE(layouts.ranking.empty());
  const RankedLayout& best = layouts.ranking.front();
  const Scenario scenario = with_layout(input::document_of("small", json), best);
  ASSERT_EQ(scenario.strategies.size(), 1u);
  const auto written =
      dialect::write_config(*dialect::find_dialect("megatron"), scenario.strategies.front(),
                            scenario.workload, scenario.cluster);
  ASSERT_TRUE(written && written->exact);
  const Parallel& parallel = scenario.workload.parallel;
  EXPECT_EQ(written->config.value("tensor-model-parallel-size", 1), parallel.tensor);
  EXPECT_EQ(written->config.value("pipeline-model-parallel-size", 1), parallel.pipeline);
  EXPECT_EQ(written->config.value("global-batch-size", 0),
            8 * 8);  // as many samples as 8 replicas of 8 micro-batches had
}

// Micro-batches and recomputation are searched with the layout held, or with it: the best is that
// of every combination, and each of its changes is told alone.
TEST(Layouts, MicroBatchesAndRecomputationAreSearchedToo) {
  Json scenario = llama();
  scenario["workload"]["batch"] = 2;
  scenario["workload"]["micro_batches"] = 4;
  scenario["workload"]["activation_checkpointing"] = "full";
  TuneOptions options;
  options.top = 3;
  options.method = TuneOptions::Method::kExhaustive;
  const Layouts found =
      tune_layouts(input::document_of("small", scenario),
                   {.micro_batches = true, .checkpointing = true, .batches = {}}, options);
  double least = 1e300;
  for (const int batch : {1, 2, 4, 8}) {
    for (const char* recompute : {"none", "selective", "full"}) {
      Json own = scenario;
      own["workload"]["batch"] = batch;
      own["workload"]["micro_batches"] = 8 / batch;
      own["workload"]["activation_checkpointing"] = recompute;
      const Scenario tried = test::parsed(own);
      const Strategy& strategy = *find_strategy(tried, tried.baseline);
      if (!measure::memory_of(tried, strategy).fits()) continue;
      least = std::min(least, Evaluator(tried).step_time(strategy));
    }
  }
  ASSERT_FALSE(found.ranking.empty());
  const RankedLayout& best = found.ranking.front();
  EXPECT_NEAR(best.metrics.step_time, least, 1e-9 * least);
  EXPECT_EQ(best.batch * best.micro_batches, 8);
  EXPECT_EQ(best.parallel, found.given.parallel);
  EXPECT_NE(best.recompute, "full");
  EXPECT_TRUE(best.words().ends_with("recompute " + best.recompute)) << best.words();
  ASSERT_FALSE(found.changes.empty());
  EXPECT_EQ(found.changes.at(0).speedup, 1);
  EXPECT_EQ(found.changes.at(1).metrics.step_time, best.metrics.step_time);
  for (const measure::Advice& change : found.changes) {
    ASSERT_GT(change.metrics.step_time, 0) << change.change;
    EXPECT_GE(change.metrics.step_time, best.metrics.step_time * (1 - 1e-9));
    EXPECT_LE(change.gain.low, change.speedup * (1 + 1e-9)) << change.change;
    EXPECT_GE(change.gain.high, change.speedup * (1 - 1e-9)) << change.change;
    EXPECT_NE(change.set_with.empty(), &change != found.changes.data()) << change.change;
  }
}

}  // namespace
}  // namespace syncline::tune
