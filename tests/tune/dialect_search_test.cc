// What a framework cannot say is searched among the configurations that its own row lists.
#include "studies/tune/dialect_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "core/base/random.h"
#include "core/executor.h"
#include "core/metrics.h"
#include "formats/input/document.h"
#include "studies/tune/thresholds.h"
#include "studies/tune/tuning.h"
#include "studies/tune/verdicts.h"
#include "tests/support/full_scenario.h"

namespace syncline::tune {
namespace {

// A framework that nobody has heard of: buckets closed by a size in bytes, before they exceed it.
dialect::Reading read_bucket(Reader config, const Workload&, const Cluster&, bool) {
  dialect::Reading reading;
  reading.strategy.fusion.rule = Fusion::Rule::kSize;
  reading.strategy.fusion.close = Fusion::Close::kBefore;
  reading.strategy.fusion.size = config.integer_or("bucket", 1, 0, kGiB);
  config.finish();
  return reading;
}

std::vector<Json> every_size(const Strategy&, const Workload&, const Cluster&,
                             const dialect::Partitions& partitions) {
  std::vector<Json> configs;
  for (const Bytes size : partitions.sizes(by_size(0, Fusion::Close::kBefore))) {
    configs.push_back({{"bucket", size}});
  }
  return configs;
}

// A few gradients on 8 nodes of a number of GPUs: start-up times weigh like bytes.
input::Document few_gradients(const std::string& dialect, const Json& config, int gpus,
                              const std::vector<std::pair<std::int64_t, double>>& gradients) {
  Json root = Json::parse(R"({"name": "few", "workload": {"name": "w", "forward_ms": 6},
      "cluster": {"name": "c", "nodes": 8, "device": "v100-sxm-32gb",
                  "intra": {"latency_us": 5, "bandwidth_gbps": 600},
                  "inter": {"latency_us": 50, "bandwidth_gbps": 100}}})");
  for (const auto& [elements, backward_us] : gradients) {
    Json& tensors = root["workload"]["tensors"];
    tensors.push_back({{"name", "layers." + std::to_string(tensors.size()) + ".weight"},
                       {"shape", {elements}},
                       {"backward_us", backward_us}});
  }
  root["cluster"]["gpus_per_node"] = gpus;
  root["strategies"].push_back({{"name", "own"}, {"dialect", dialect}, {"config", config}});
  return input::document_from_text("few.json", root.dump());
}

// Expects that what `tune --emit` writes is within 0.5 % of the best of these configurations.
void expect_little_regret(const input::Document& document, const std::vector<Json>& grid) {
  const std::string name = document.root["strategies"][0]["dialect"];
  const dialect::Dialect& dialect = *dialect::find_dialect(name);
  const Tuning tuning = tune_document(document, {}, "", &dialect);
  Evaluator model(tuning.scenario);
  double least = 1e300;
  Json best;
  for (const Json& config : grid) {
    const Strategy strategy =
        dialect::reading_of(dialect, config, tuning.scenario.workload, tuning.scenario.cluster)
            .strategy;
    const double step = model.step_time(strategy);
    if (step < least) best = config;
    least = std::min(least, step);
  }
  ASSERT_TRUE(tuning.emitted);
  EXPECT_LE(tuning.emitted->step_time, least * 1.005)
      << name << " " << best << " over " << tuning.emitted->config;
}

const std::vector<std::pair<std::int64_t, double>> kFewGradients{
    {309530, 159.6}, {404296, 524}, {103401, 1326.6}, {341322, 236.9}};

// A whole job's own keys are no part of a candidate that leaves them out.
TEST(Regret, PaddlesSizesAndCommunicatorsAreSearchedTogether) {
  std::vector<Json> grid;
  for (int size = 1; size < 80; ++size) {
    for (const int count : {1, 2, 3, 4}) {
      grid.push_back({{"fuse_grad_size_in_MB", size},
                      {"nccl_comm_num", count},
                      {"sync_nccl_allreduce", count == 1}});
    }
  }
  expect_little_regret(
      few_gradients(
          "paddle", {{"fuse_all_reduce_ops", false}, {"nccl_comm_num", 1}}, 2,
          {{145554, 241}, {3190109, 1884}, {45048, 2901.7}, {6693236, 300.7}, {8930579, 35.2}}),
      grid);
}

TEST(Regret, MindSporesEndsAreMoved) {
  std::vector<Json> grid;
  for (unsigned ends = 0; ends < 8; ++ends) {
    Json list = Json::array();
    for (unsigned end = 0; end < 3; ++end) {
      if (((ends >> end) & 1U) != 0) list.push_back(end);
    }
    list.push_back(3);
    grid.push_back({{"parallel_mode", "data_parallel"},
                    {"comm_fusion", {{"allreduce", {{"mode", "index"}, {"config", list}}}}}});
  }
  expect_little_regret(
      few_gradients("mindspore", {{"parallel_mode", "data_parallel"}}, 1, kFewGradients), grid);
}

TEST(Regret, MegatronsFlagsAreSearchedWithSizes) {
  std::vector<Json> grid{{{"use-distributed-optimizer", true}}, Json::object()};
  for (const std::int64_t size : {1, 103401, 341322, 444723, 507697, 749019, 1158549}) {
    for (const bool sharded : {false, true}) {
      grid.push_back({{"overlap-grad-reduce", true},
                      {"ddp-bucket-size", size},
                      {"use-distributed-optimizer", sharded},
                      {"overlap-param-gather", sharded}});
    }
  }
  for (const bool sharded : {false, true}) {
    expect_little_regret(
        few_gradients("megatron", {{"use-distributed-optimizer", sharded}}, 2, kFewGradients),
        grid);
  }
}

// Stages and sizes together: no stage is best with another one's buckets.
TEST(Regret, DeepSpeedsStagesAreSearchedWithSizes) {
  std::vector<Json> grid;
  for (const int stage : {0, 1, 2, 3}) {
    for (const std::int64_t size : {1, 103401, 341322, 444723, 507697, 749019, 1158549}) {
      for (const bool overlap : {false, true}) {
        grid.push_back(
            {{"zero_optimization",
              {{"stage", stage}, {"overlap_comm", overlap}, {"reduce_bucket_size", size}}}});
      }
    }
  }
  expect_little_regret(
      few_gradients("deepspeed", {{"zero_optimization", {{"stage", 0}}}}, 8, kFewGradients), grid);
}

// FSDP as it comes takes no unit of two formats; the others are compared all the same.
TEST(DialectSearch, AFrameworkThatRefusesTheModelIsLeftOut) {
  const Scenario scenario = test::parsed(Json::parse(R"({"name": "mixed",
      "workload": {"name": "mixed", "forward_ms": 1, "tensors": [
        {"name": "norm.weight", "shape": [64], "dtype": "fp32", "backward_us": 10},
        {"name": "mlp.weight", "shape": [64, 64], "dtype": "bf16", "backward_us": 10}]},
      "cluster": {"name": "c", "nodes": 2, "gpus_per_node": 4,
                  "intra": {"latency_us": 4, "bandwidth_gbps": 1000},
                  "inter": {"latency_us": 30, "bandwidth_gbps": 25}},
      "strategies": [{"name": "one"}]})"));
  Evaluator model(scenario);
  std::set<std::string> names;
  for (const auto& own : framework_defaults(scenario.strategies.front(), model)) {
    names.insert(own.dialect);
  }
  EXPECT_FALSE(names.contains("fsdp"));
  EXPECT_TRUE(names.contains("pytorch") && names.contains("megatron"));
}

TEST(DialectSearch, ARowListsWhatIsTried) {
  const Scenario scenario = test::parsed(Json::parse(R"({"name": "search",
      "workload": ")" SYNCLINE_SOURCE_DIR R"(/scenarios/workloads/resnet50_v100.json",
      "cluster": {"name": "c", "nodes": 2, "gpus_per_node": 4,
                  "intra": {"latency_us": 4, "bandwidth_gbps": 1000},
                  "inter": {"latency_us": 30, "bandwidth_gbps": 25}},
      "strategies": [{"name": "three", "streams": 3}]})"));
  Evaluator model(scenario);
  const dialect::Dialect dummy{
      .name = "dummy", .summary = "one number", .read = read_bucket, .candidates = every_size};
  const Strategy& winner = scenario.strategies.front();
  const Emitted best = best_config(dummy, winner, Json(), model);
  EXPECT_GT(best.searched, 10u);
  EXPECT_FALSE(best.exact) << "it has one stream";
  for (const Bytes size : {Bytes{1}, kMiB, 4 * kMiB, 25 * kMiB, kGiB}) {
    const Json config{{"bucket", size}};
    const Strategy other =
        dialect::reading_of(dummy, config, scenario.workload, scenario.cluster).strategy;
    EXPECT_LE(best.step_time, model.step_time(other) * (1 + 1e-3));
  }

  // Without a list there is its least configuration.
  const dialect::Dialect silent{.name = "silent", .summary = "reads only", .read = read_bucket};
  const Emitted least = best_config(silent, winner, Json(), model);
  EXPECT_EQ(least.searched, 1u);
  EXPECT_EQ(least.config, Json::object());
}

// What a joint search finds: sparse exchange and rare averaging beside fusion and streams.
Json joint_scenario() {
  return Json::parse(R"({"name": "joint",
      "workload": {"name": "w", "batch": 1, "forward_ms": 10, "tensors": [
        {"name": "l0.w", "shape": [4000000], "backward_us": 700},
        {"name": "l1.w", "shape": [1000000], "backward_us": 3000},
        {"name": "l2.w", "shape": [300000], "backward_us": 150},
        {"name": "l3.w", "shape": [50000], "backward_us": 700},
        {"name": "l4.w", "shape": [2000000], "backward_us": 3000}]},
      "cluster": {"name": "c", "nodes": 4, "gpus_per_node": 2,
                  "intra": {"latency_us": 5, "bandwidth_gbps": 100},
                  "inter": {"latency_us": 20, "bandwidth_gbps": 10},
                  "device": {"memory_gbytes_per_s": 300, "launch_us": 5}},
      "strategies": [{"name": "s", "fusion": {"rule": "size", "size_mb": 25}}]})");
}

Emitted emitted(const Json& document, const char* dialect, Seconds* wanted = nullptr) {
  const Scenario scenario = test::parsed(document);
  Evaluator model(scenario);
  const Strategy& winner = scenario.strategies.front();
  if (wanted != nullptr) *wanted = model.step_time(winner);
  return best_config(*dialect::find_dialect(dialect), winner, Json(), model);
}

// Horovod compresses by fp16 alone: what it can say is then searched as for a dense winner.
TEST(DialectSearch, ATrainingThatTheFrameworkLacksIsSearchedAsIfItWereNotThere) {
  Json dense = joint_scenario();
  const Emitted best = emitted(dense, "horovod");
  for (const Json& training :
       {Json{{"compression", {{"codec", "dgc"}}}}, Json{{"local_sgd", {{"period", 16}}}}}) {
    Json sparse = joint_scenario();
    sparse["strategies"][0].update(training);
    const Emitted found = emitted(sparse, "horovod");
    EXPECT_EQ(found.step_time, best.step_time) << found.config.dump() << best.config.dump();
    EXPECT_GT(found.searched, 10u);
    EXPECT_FALSE(found.exact);
  }
}

// Paddle encodes by 14 kernels a gradient, whoever asks: the same exchange takes longer.
TEST(DialectSearch, TheSamePlanInAnotherTimeIsNotExact) {
  Json document = joint_scenario();
  document["strategies"][0]["compression"] = {{"codec", "dgc"}};
  Seconds wanted = 0;
  const Emitted found = emitted(document, "paddle", &wanted);
  EXPECT_EQ(found.strategy.compression.codec, "dgc") << "it has dgc, which it keeps";
  EXPECT_GT(found.step_time, wanted * 1.01);
  EXPECT_FALSE(found.exact);
  EXPECT_EQ(found.difference, "its encoding takes longer and its decoding takes longer");
}

// Whatever setting the winner does not speak of: no cap, with or without copies, beats what is
// called the best that the framework can express by more than what is left for a round size.
TEST(DialectSearch, AllSettingsOfTheFrameworkAreSearched) {
  Json document = joint_scenario();
  document["cluster"]["device"]["memory_gbytes_per_s"] = 20;
  document["strategies"] =
      Json::array({{{"name", "s"}, {"dialect", "pytorch"}, {"config", {{"bucket_cap_mb", 8}}}}});
  const Emitted best = emitted(document, "pytorch");
  EXPECT_TRUE(best.config.value("gradient_as_bucket_view", false)) << best.config;
  for (const bool view : {true, false}) {
    for (const int cap : {1, 2, 4, 8, 12, 16, 20, 25, 32}) {
      document["strategies"][0]["config"] = {{"bucket_cap_mb", cap},
                                             {"gradient_as_bucket_view", view}};
      Seconds other = 0;
      emitted(document, "pytorch", &other);
      EXPECT_LE(best.step_time, other * 1.0051) << cap << view << best.config;
    }
  }
}

// A module's own variable is written only where it gains more than 1 %.
TEST(DialectSearch, PrivateVariablesHaveToGain) {
  int with = 0, without = 0;
  for (const double gbps : {1.0, 5.0, 10.0, 40.0}) {
    for (const double size : {0.25, 1.0, 4.0, 16.0}) {
      Json document = joint_scenario();
      document["workload"]["torch"] = "2.1";
      document["cluster"]["inter"]["bandwidth_gbps"] = gbps;
      document["strategies"][0]["fusion"] = {{"rule", "size"}, {"size_mb", size}};
      const Emitted best = emitted(document, "pytorch");
      if (!best.config.contains("_DEFAULT_FIRST_BUCKET_BYTES")) {
        ++without;
        continue;
      }
      ++with;
      Json plain = best.config;
      plain.erase("_DEFAULT_FIRST_BUCKET_BYTES");
      document["strategies"][0] = {{"name", "s"}, {"dialect", "pytorch"}, {"config", plain}};
      Seconds other = 0;
      emitted(document, "pytorch", &other);
      EXPECT_GT(other, best.step_time * 1.0099) << best.config;
    }
  }
  EXPECT_GT(without, 0) << "and " << with << " with";
}

std::vector<Json> every_gradient_or_one_bucket(const Strategy&, const Workload&, const Cluster&,
                                               const dialect::Partitions&) {
  return {{{"bucket", 1}}, {{"bucket", kGiB}}};
}

// Fewer collectives may cost 0.1 % of a step. What they cost is the same whatever the forward pass
// takes, its share of the step is not.
TEST(DialectSearch, ATenthOfAPercentIsGivenForFewerCollectives) {
  const dialect::Dialect dummy{.name = "dummy",
                               .summary = "one number",
                               .read = read_bucket,
                               .candidates = every_gradient_or_one_bucket};
  Json document = joint_scenario();
  document["strategies"] = Json::array({{{"name", "each alone"}, {"fusion", {{"rule", "none"}}}},
                                        {{"name", "one"}, {"fusion", {{"rule", "one"}}}}});
  Scenario scenario = test::parsed(document);
  Evaluator model(scenario);
  const auto step_of = [&](const Strategy& strategy) { return model.step_time(strategy); };
  const Strategy& each_alone = scenario.strategies.front();
  const Seconds forward = scenario.workload.forward;
  const Seconds apart = step_of(each_alone) - forward;
  const Seconds lost = step_of(scenario.strategies.back()) - forward - apart;
  ASSERT_GT(lost, 0.01 * apart);
  for (const double share : {0.0005, 0.0009, 0.0011, 0.002}) {
    scenario.workload.forward = lost / share - apart;
    const Emitted best = best_config(dummy, each_alone, Json(), model);
    EXPECT_EQ(best.config["bucket"] == kGiB, share < 0.001) << share;
  }
}

// Of 50 MiB, in bytes, one sees that somebody chose it: a size of three bytes, which makes a bucket
// of each gradient, has to gain 0.5 % over it.
TEST(DialectSearch, ASizeThatIsNotRoundHasToGain) {
  static constexpr Bytes kRound = 50 * kMiB;
  const dialect::Dialect dummy{.name = "dummy",
                               .summary = "one number",
                               .read = read_bucket,
                               .candidates = [](const Strategy&, const Workload&, const Cluster&,
                                                const dialect::Partitions&) -> std::vector<Json> {
                                 return {{{"bucket", 3}}, {{"bucket", kRound}}};
                               }};
  Json document = joint_scenario();
  document["strategies"] = Json::array({{{"name", "each alone"}, {"fusion", {{"rule", "none"}}}},
                                        {{"name", "one"}, {"fusion", {{"rule", "one"}}}}});
  Scenario scenario = test::parsed(document);
  Evaluator model(scenario);
  const Strategy& each_alone = scenario.strategies.front();
  const Seconds forward = scenario.workload.forward;
  const Seconds apart = model.step_time(each_alone) - forward;
  const Seconds lost = model.step_time(scenario.strategies.back()) - forward - apart;
  for (const double share : {0.002, 0.0045, 0.0055, 0.01}) {
    scenario.workload.forward = lost / share - apart;
    const Emitted best = best_config(dummy, each_alone, Json(), model);
    EXPECT_EQ(best.config["bucket"] == kRound, share < 0.005) << share;
  }
}

// What carries out the collectives belongs to what is emitted: read back with it, and without what
// no setting says, the file takes what was said.
TEST(DialectSearch, EmittedConfigurationsKeepTheirAlgorithm) {
  for (const char* algorithm : {"nccl", "ring", "double_binary_tree", "halving_doubling"}) {
    Json document = joint_scenario();
    document["cluster"]["library"] = "nccl";
    document["cluster"]["device"]["name"] = "A100";
    document["strategies"][0]["algorithm"] = algorithm;
    const Emitted best = emitted(document, "pytorch");
    EXPECT_EQ(best.algorithm.empty(), best.setting.empty()) << algorithm;
    Json back{{"name", "s"}, {"dialect", "pytorch"}, {"config", best.config}};
    if (!best.algorithm.empty()) back["algorithm"] = best.algorithm;
    document["strategies"] = Json::array({back});
    Seconds taken = 0;
    emitted(document, "pytorch", &taken);
    EXPECT_EQ(taken, best.step_time) << algorithm << best.config;
  }
}

// Where a strategy closes buckets at a size, the configuration says that size.
TEST(DialectSearch, TheSizeThatIsNamedIsWritten) {
  for (const double size : {0.0625, 0.25, 2.0, 16.0}) {
    Json document = joint_scenario();
    document["strategies"][0]["fusion"] = {{"rule", "size"}, {"size_mb", size}};
    const Emitted best = emitted(document, "pytorch");
    ASSERT_TRUE(best.exact) << best.difference;
    EXPECT_EQ(best.config["bucket_cap_mb"], size);
  }
}

TEST(DialectSearch, AnExactConfigurationTakesTheWinnersTime) {
  Random random(20);
  const auto pick = [&](const Json& choices) { return choices[random.below(choices.size())]; };
  int exact = 0;
  for (int round = 0; round < 200; ++round) {
    Json document = joint_scenario();
    Json& strategy = document["strategies"][0];
    strategy["fusion"] = pick(Json::parse(R"([{"rule": "none"}, {"rule": "one"},
        {"rule": "size", "size_mb": 1}, {"rule": "size", "size_mb": 5, "cycle_ms": 1,
         "close": "before"}, {"rule": "size", "size_mb": 4, "align_bytes": 256},
        {"rule": "size", "size_mb": 25, "first_size_mb": 1}])"));
    strategy["streams"] = pick({1, 2});
    strategy["host_sync"] = pick({true, false});
    strategy["bucket_copies"] = pick({true, false});
    strategy["update"] = pick({"after_all", "per_bucket"});
    document["workload"]["update_ms"] = pick({0, 2});
    if (round % 3 == 1)
      strategy["compression"] = pick(Json::parse(R"([{"codec": "fp16"},
        {"codec": "dgc"}, {"codec": "dgc", "encode_launches": 14, "decode_launches": 9}])"));
    if (round % 3 == 2)
      strategy["local_sgd"] = pick(Json::parse(R"([{"period": 4},
        {"period": 16, "begin_step": 100}, {"period": 4, "subgroup": 2, "warmup": "gradients"}])"));
    if (round % 3 == 2) strategy["update"] = "after_all";
    if (round % 4 == 0) document["training"] = {{"from", 0}, {"steps", 200}};
    if (!test::error_of(document).empty()) continue;  // knobs that have no meaning together
    for (const char* dialect : {"paddle", "pytorch", "horovod", "mindspore"}) {
      Seconds wanted = 0;
      const Emitted found = emitted(document, dialect, &wanted);
      EXPECT_EQ(found.exact, found.difference.empty());
      if (!found.exact) continue;
      ++exact;
      EXPECT_NEAR(found.step_time, wanted, 1e-9 * wanted)
          << dialect << " " << strategy.dump() << " " << found.config.dump();
    }
  }
  EXPECT_GT(exact, 20);
}

}  // namespace
}  // namespace syncline::tune
