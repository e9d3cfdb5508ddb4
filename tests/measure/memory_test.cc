// What a strategy asks of a rank's memory, against the tables of those who published the counts.
#include "studies/rows/memory.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "studies/rows/fitting.h"
#include "studies/warnings/warnings.h"
#include "tests/support/full_scenario.h"
#include "tests/support/studies.h"
#include "tests/support/text.h"

namespace syncline::measure {
namespace {

using test::contains;

constexpr double kBillion = 1e9;

// Layers of 10^8 parameters on nodes of eight GPUs that have 16 GB each.
Json scenario_of(int layers, int nodes, const std::string& dtype) {
  Json scenario = Json::parse(R"({
    "name": "m",
    "workload": {"name": "w", "forward_ms": 1, "backward_ms": 2},
    "cluster": {"name": "c", "gpus_per_node": 8,
                "intra": {"latency_us": 3, "bandwidth_gbps": 1200},
                "inter": {"latency_us": 10, "bandwidth_gbps": 100},
                "device": {"name": "T4", "memory_gbytes": 16}},
    "strategies": []})");
  scenario["workload"]["dtype"] = dtype;
  for (int layer = layers; layer-- > 0;) {
    scenario["workload"]["tensors"].push_back(
        {{"name", "layers." + std::to_string(layer) + ".weight"}, {"shape", {10000, 10000}}});
  }
  scenario["cluster"]["nodes"] = nodes;
  return scenario;
}

void add(Json& scenario, const char* dialect, const char* config) {
  scenario["strategies"].push_back({{"name", std::string(dialect) + config},
                                    {"dialect", dialect},
                                    {"config", Json::parse(config)}});
}

Memory memory_in(const Json& scenario) {
  const Scenario read = test::parsed(scenario);
  return memory_of(read, read.strategies.front());
}

Memory memory_with(Json scenario, const char* dialect, const char* config) {
  add(scenario, dialect, config);
  return memory_in(scenario);
}

// What the tables count: no buffers.
std::string shortage_of(const Json& scenario) {
  return memory_shortage(input::document_of("m.json", scenario), test::parsed(scenario)).words();
}

double counted(const Memory& memory) { return memory.states() - memory.buffers; }

// An offload leaves the fp16 weights on the device, ZeRO-1's the gradients too, of 16 bytes a
// parameter; FSDP's leaves the gathered units alone.
TEST(Memory, AnOffloadLeavesTheDevice) {
  const Json model = scenario_of(10, 1, "fp16");
  const auto zero = [&](int stage, const char* more) {
    const std::string config = R"({"zero_optimization": {"stage": )" + std::to_string(stage) +
                               R"(, "offload_optimizer": {"device": "cpu"})" + more + "}}";
    return memory_with(model, "deepspeed", config.c_str());
  };
  EXPECT_DOUBLE_EQ(counted(zero(1, "")), 4 * kBillion);
  EXPECT_DOUBLE_EQ(counted(zero(2, "")), 2 * kBillion);
  EXPECT_DOUBLE_EQ(counted(zero(3, "")), 2 * kBillion / 8);
  EXPECT_DOUBLE_EQ(counted(zero(3, R"(, "offload_param": {"device": "cpu"})")), 0);
  EXPECT_DOUBLE_EQ(counted(memory_with(model, "fsdp", R"({"offload_policy": "CPUOffloadPolicy"})")),
                   0);
  const Memory shards =
      memory_with(model, "deepspeed",
                  R"({"zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}}})");
  EXPECT_DOUBLE_EQ(counted(shards), 14 * kBillion / 8);
  const Memory megatron = memory_with(
      model, "megatron", R"({"use-distributed-optimizer": true, "optimizer-cpu-offload": true})");
  EXPECT_DOUBLE_EQ(megatron.optimizer, 0);
}

// Rajbhandari et al. 2020, figure 1: 7.5 * 10^9 parameters in fp16 with Adam on 64 GPUs.
TEST(Memory, IsWhatZeroPublished) {
  const Json model = scenario_of(75, 8, "fp16");
  const std::vector<std::pair<const char*, double>> published{
      {R"({"zero_optimization": {"stage": 0}})", 120},
      {R"({"zero_optimization": {"stage": 1}})", 31.4},
      {R"({"zero_optimization": {"stage": 2}})", 16.6},
      {R"({"zero_optimization": {"stage": 3}})", 1.9}};
  for (const auto& [config, gigabytes] : published) {
    EXPECT_NEAR(counted(memory_with(model, "deepspeed", config)) / kBillion, gigabytes, 0.05)
        << config;
  }
}

// The parameters of the last outer step and nesterov's momentum, in fp32, and what travels at a
// time: 4 * 10^8 parameters in 4 layers. Sharded in nodes of eight GPUs a rank has its part of all.
TEST(Memory, OuterStepsKeepWhatTheyBeganWith) {
  const auto held = [](const char* strategy) {
    Json scenario = scenario_of(4, 2, "fp32");
    scenario["strategies"].push_back(Json::parse(strategy));
    return memory_in(scenario);
  };
  const Memory plain = held(R"({"name": "s"})");
  const Memory sgd =
      held(R"({"name": "s", "local_sgd": {"period": 8, "outer": {"optimizer": "sgd"}}})");
  EXPECT_EQ(sgd.optimizer - plain.optimizer, 16e8);
  EXPECT_EQ(sgd.buffers, 16e8);
  const Memory nesterov =
      held(R"({"name": "s", "local_sgd": {"period": 8, "fragments": 4, "outer": {}}})");
  EXPECT_EQ(nesterov.optimizer - plain.optimizer, 32e8);
  EXPECT_EQ(nesterov.buffers, 4e8);
  const Memory sharded = held(R"({"name": "s", "exchange": "sharded", "regather": true,
      "local_sgd": {"period": 8, "subgroup": 8, "outer": {}}})");
  EXPECT_EQ(sharded.optimizer, (plain.optimizer + 32e8) / 8);
}

// Megatron-Core's documentation of the distributed optimizer: bytes a parameter.
TEST(Memory, IsWhatMegatronPublished) {
  constexpr double kParameters = 2e8;
  const auto bytes = [](const char* dtype, const char* config) {
    return counted(memory_with(scenario_of(2, 4, dtype), "megatron", config)) / kParameters;
  };
  const char* distributed = R"({"use-distributed-optimizer": true})";
  EXPECT_DOUBLE_EQ(bytes("bf16", "{}"), 18);
  EXPECT_DOUBLE_EQ(bytes("bf16", distributed), 6 + 12.0 / 32);
  // Gradients that are narrower than fp32 have a copy that the update reads.
  EXPECT_DOUBLE_EQ(bytes("fp16", "{}"), 20);
  EXPECT_DOUBLE_EQ(bytes("fp16", distributed), 4 + 16.0 / 32);
  EXPECT_DOUBLE_EQ(bytes("bf16", R"({"grad-reduce-in-bf16": true})"), 20);
  EXPECT_DOUBLE_EQ(bytes("fp32", "{}"), 16);
  EXPECT_DOUBLE_EQ(bytes("fp32", distributed), 8 + 8.0 / 32);
}

// A copy has as many values as the gradient, and only a narrow gradient has one.
TEST(Memory, CopiesOfSparseGradientsAreOfTheirRows) {
  for (const auto& [dtype, bytes] : {std::pair("fp32", 4.0), {"bf16", 2.0 + 4.0}}) {
    Json scenario = scenario_of(2, 1, dtype);
    scenario["workload"]["tensors"][0]["sparse_rows"] = 10;
    const Memory memory = memory_with(scenario, "megatron", R"({"grad-reduce-in-bf16": true})");
    EXPECT_DOUBLE_EQ(memory.gradients, bytes * (1e8 + 10 * 10000)) << dtype;
  }
}

TEST(Memory, OptimizersKeepWhatTheyKeep) {
  Json scenario = scenario_of(1, 1, "fp32");
  const auto bytes = [&](const char* optimizer) {
    scenario["workload"]["optimizer"] = optimizer;
    return memory_with(scenario, "pytorch", "{}").optimizer / 1e8;
  };
  EXPECT_EQ(bytes("sgd"), 0);
  EXPECT_EQ(bytes("momentum"), 4);
  EXPECT_EQ(bytes("adam"), 8);
}

// DDP's buckets are the gradients once more, unless gradients are views of them.
TEST(Memory, CountsWhatStrategiesAddToIt) {
  const Json model = scenario_of(4, 2, "fp32");
  EXPECT_EQ(memory_with(model, "pytorch", "{}").buffers, 16e8);
  EXPECT_EQ(memory_with(model, "pytorch", R"({"gradient_as_bucket_view": true})").buffers, 0);
  const auto own = [&](const char* keys) {
    Json scenario = model;
    scenario["strategies"].push_back(Json::parse(keys));
    return memory_in(scenario).buffers;
  };
  EXPECT_EQ(own(R"({"name": "fp16", "compression": {"codec": "fp16"}})"), 8e8);
  EXPECT_EQ(own(R"({"name": "dgc", "compression": {"codec": "dgc"}})"), 32e8);
  EXPECT_EQ(own(R"({"name": "local", "local_sgd": {"period": 4}})"), 16e8);
}

// Units of a layer: two are whole at a time, parameters and gradients alike.
TEST(Memory, FsdpKeepsTwoWholeUnits) {
  const Memory memory =
      memory_with(scenario_of(10, 2, "fp32"), "fsdp", R"({"units": ["layers.*"]})");
  EXPECT_DOUBLE_EQ(counted(memory), 16e9 / 16);
  EXPECT_DOUBLE_EQ(memory.buffers, 2 * 4e8 + 2 * 4e8);
}

// Nine of ten layers of 10^8 fp16 parameters are frozen: these have 2 bytes each, the tenth 2 of
// its gradient and 12 of its states more. Stage 3 cuts all of it by 8, stage 1 the states alone.
TEST(Memory, FrozenParametersAreWeightsAlone) {
  Json model = scenario_of(10, 1, "fp16");
  for (std::size_t t = 0; t < 9; ++t) model["workload"]["tensors"][t]["frozen"] = true;
  EXPECT_DOUBLE_EQ(counted(memory_with(model, "pytorch", "{}")), 34e8);
  const auto zero = [&](const std::string& stage) {
    const std::string config = R"({"zero_optimization": {"stage": )" + stage + "}}";
    return counted(memory_with(model, "deepspeed", config.c_str()));
  };
  EXPECT_DOUBLE_EQ(zero("1"), 22e8 + 12e8 / 8);
  EXPECT_DOUBLE_EQ(zero("3"), 34e8 / 8);
  // FSDP1 sums a unit as one, but none that is frozen as a whole.
  const char* apart = R"({"version": 1, "units": ["layers.*"]})";
  EXPECT_DOUBLE_EQ(counted(memory_with(model, "fsdp", apart)), 34e8 / 8);
  const char* mixed = R"({"version": 1, "units": [], "use_orig_params": true})";
  EXPECT_DOUBLE_EQ(counted(memory_with(model, "fsdp", mixed)), (34e8 + 9 * 2e8) / 8);
}

TEST(Memory, ShardingMoreNeverTakesMore) {
  const char* full = R"({"version": 1, "units": ["layers.*"], "sharding_strategy": "FULL_SHARD"})";
  const char* grads = R"({"version": 1, "units": ["layers.*"],
                          "sharding_strategy": "SHARD_GRAD_OP"})";
  const char* none = R"({"version": 1, "units": ["layers.*"], "sharding_strategy": "NO_SHARD"})";
  double before = 1e30;
  for (const int nodes : {1, 2, 4, 16, 64}) {
    const Json model = scenario_of(10, nodes, "bf16");
    const double shards = memory_with(model, "fsdp", full).total();
    EXPECT_LE(shards, memory_with(model, "fsdp", grads).total());
    EXPECT_LE(memory_with(model, "fsdp", grads).total(), memory_with(model, "fsdp", none).total());
    EXPECT_LE(memory_with(model, "fsdp", none).total(),
              memory_with(model, "pytorch", "{}").total());
    EXPECT_LE(shards, before);
    before = shards;
  }
}

// DeepSpeed lays out a buffer of reduce_bucket_size (4 bytes a number), and a second one where sums
// overlap the backward pass; its stage 3 has one either way.
TEST(Memory, DeepSpeedsBuffersAreOneOrTwo) {
  const Json model = scenario_of(10, 2, "fp32");
  const auto buffers = [&](int stage, bool overlap) {
    Json config{{"zero_optimization",
                 {{"stage", stage},
                  {"overlap_comm", overlap},
                  {"contiguous_gradients", true},
                  {"reduce_bucket_size", 2000000000},
                  {"stage3_max_live_parameters", 1}}}};
    return memory_with(model, "deepspeed", config.dump().c_str()).buffers;
  };
  EXPECT_DOUBLE_EQ(buffers(2, true), 2 * buffers(2, false));
  EXPECT_DOUBLE_EQ(buffers(3, true), buffers(3, false));
  EXPECT_GE(buffers(2, false), 8e9);
}

// Gradients that add up without an exchange are whole.
TEST(Memory, GradientsThatAccumulateAreWhole) {
  Json model = scenario_of(10, 2, "fp32");
  model["workload"]["micro_batches"] = 4;
  const char* each = R"({"units": ["layers.*"], "no_sync": false})";
  const char* last = R"({"units": ["layers.*"], "no_sync": true})";
  EXPECT_EQ(memory_with(model, "fsdp", last).gradients, 4e9);
  EXPECT_EQ(memory_with(model, "fsdp", each).gradients, 4e9 / 16);
  // As narrow as they leave the backward pass; a shard is the parameters' again.
  const std::string half = R"(, "mp_policy": {"param_dtype": "bf16"}})";
  const auto in_half = [&](std::string config) {
    config.pop_back();
    return memory_with(model, "fsdp", (config + half).c_str()).gradients;
  };
  EXPECT_EQ(in_half(last), 2e9);
  EXPECT_EQ(in_half(each), 4e9 / 16);
}

Memory of_resnet(int batch) {
  Json scenario = scenario_of(1, 1, "fp32");
  scenario["workload"] = {{"name", "resnet50"},
                          {"batch", batch},
                          {"operators", {{"architecture", "resnet50"}, {"dtype", "fp32"}}}};
  scenario["cluster"]["device"] = "h100-sxm";
  return memory_with(scenario, "pytorch", "{}");
}

// Korthikanti et al. 2022, equation 1: s b h (34 + 5 a s / h) bytes a layer in fp16, the second
// term without an attention that keeps no scores; beside it the model has its logits.
TEST(Memory, ActivationsAreWhatWasPublished) {
  constexpr double kLayers = 24, kHidden = 1024, kHeads = 16, kWords = 50257;
  constexpr double kTokens = 1024, kBatch = 8;
  Json scenario = scenario_of(1, 1, "fp32");
  scenario["cluster"]["device"] = "h100-sxm";
  for (const bool flash : {true, false}) {
    scenario["workload"] = {{"name", "g"},
                            {"batch", kBatch},
                            {"operators",
                             {{"architecture", "gpt2_medium"},
                              {"sequence", kTokens},
                              {"dtype", "fp16"},
                              {"flash_attention", flash}}}};
    const double scores = flash ? 0 : 5 * kHeads * kTokens / kHidden;
    const double published = kLayers * kTokens * kBatch * kHidden * (34 + scores);
    const double logits = 12 * kTokens * kBatch * kWords;  // torch's loss in fp32
    EXPECT_NEAR(memory_with(scenario, "pytorch", "{}").activations / (published + logits), 1, 0.01);
  }
}

// The same paper, equations 2 and 4: a tensor group of t keeps s b h (10 + (24 + 5 a s / h) / t) a
// layer, with sequence parallelism all of it over t; with full recomputation a layer keeps its
// input, 2 s b h / t, and one is computed again at a time; the embedding adds a few percent. Before
// the equations comes Megatron's loss: 6 bytes per word of the logits, over t.
TEST(Memory, ActivationsOfATensorGroupAreWhatWasPublished) {
  constexpr double kLayers = 24, kHidden = 1024, kHeads = 16, kTokens = 1024, kBatch = 8,
                   kWords = 64;
  constexpr double kSize = kTokens * kBatch * kHidden;
  Json scenario = scenario_of(1, 8, "fp16");
  scenario["cluster"]["device"] = "h100-sxm";
  const auto activations = [&](int tensor, bool sequence, bool full, bool flash) {
    scenario["workload"] = {
        {"name", "g"},
        {"batch", kBatch},
        {"activation_checkpointing", full ? "full" : "none"},
        {"operators",
         {{"architecture", "gpt2"},
          {"sequence", kTokens},
          {"dtype", "fp16"},
          {"shape",
           {{"layers", 24},
            {"hidden", 1024},
            {"heads", 16},
            {"words", static_cast<int>(kWords)},
            {"positions", 1024}}},
          {"flash_attention", flash}}},
        {"parallel", {{"tensor", tensor}, {"pipeline", 1}, {"sequence", sequence}}}};
    return memory_with(scenario, "megatron", "{}").activations;
  };
  for (const double t : {2.0, 4.0, 8.0}) {
    for (const bool flash : {true, false}) {
      const double scores = flash ? 0 : 5 * kHeads * kTokens / kHidden;
      const double whole = kLayers * kSize * (10 + (24 + scores) / t);
      const double cut = kLayers * kSize * (34 + scores) / t;
      const int tensor = static_cast<int>(t);
      EXPECT_NEAR(activations(tensor, false, false, flash) / whole, 1, 0.02) << t;
      EXPECT_NEAR(activations(tensor, true, false, flash) / cut, 1, 0.02) << t;
    }
    const double inputs = kLayers * 2 * kSize / t;
    const double layer = kSize * 34 / t;
    const double loss = 6 * kTokens * kBatch * kWords / t;
    EXPECT_NEAR(activations(static_cast<int>(t), true, true, true) / (inputs + layer + loss), 1,
                0.04)
        << t;
  }
}

// Of the operators, each value once; twice the samples are twice the bytes.
TEST(Memory, ActivationsGrowWithTheBatch) {
  const Memory one = of_resnet(32);
  EXPECT_TRUE(one.counts_activations());
  EXPECT_NEAR(of_resnet(64).activations / one.activations, 2, 0.01);
  EXPECT_EQ(one.available, 80e9);
  EXPECT_FALSE(memory_with(scenario_of(1, 1, "fp32"), "pytorch", "{}").counts_activations());
}

// What the forward pass writes and the backward pass reads; what took over memory is that memory.
TEST(Memory, ActivationsAreWhatTheBackwardPassReads) {
  Json scenario = scenario_of(1, 1, "fp32");
  scenario["cluster"]["device"] = "h100-sxm";
  scenario["workload"]["tensors"] = Json::parse(R"([{"name": "w", "shape": [10]}])");
  scenario["workload"]["operators"] = Json::parse(R"({
    "values": [{"name": "w", "bytes": 40}, {"name": "a", "bytes": 100}, {"name": "b", "bytes": 100},
               {"name": "c", "bytes": 1000}, {"name": "w@GRAD", "bytes": 40}],
    "list": [{"kind": "mul", "inputs": ["w"], "outputs": ["a"], "flops": 1},
             {"kind": "relu", "inputs": ["a"], "in_place": ["b"]},
             {"kind": "loss", "inputs": ["b"], "outputs": ["c"]},
             {"kind": "mul_grad", "part": "backward", "inputs": ["a", "b", "w"],
              "outputs": ["w@GRAD"]}]})");
  EXPECT_EQ(memory_with(scenario, "pytorch", "{}").activations, 100);
}

TEST(Memory, StrategiesThatDoNotFitAreNamedFirst) {
  Json scenario = scenario_of(80, 2, "fp32");
  add(scenario, "pytorch", "{}");
  const Scenario ddp = test::parsed(scenario);
  const std::string shortage = shortage_of(scenario);
  EXPECT_TRUE(contains(
      shortage, "with Adam (assumed) needs 160 GB per GPU before its activations, T4 has 16 GB"))
      << shortage;
  EXPECT_TRUE(contains(shortage, "'FSDP2' needs ")) << shortage;
  EXPECT_TRUE(shortage.ends_with(" GB and fits: syncline tune m.json --emit fsdp")) << shortage;
  Json larger = scenario_of(700, 2, "fp32");
  add(larger, "pytorch", "{}");
  const std::string many = shortage_of(larger);
  EXPECT_TRUE(contains(
      many, ", the least of all that was tried, and does not fit either: 'FSDP2' fits on "))
      << many;
  EXPECT_TRUE(many.ends_with(" such nodes")) << many;
  EXPECT_TRUE(contains(many, "needs 1400 GB per GPU before")) << many;
  EXPECT_TRUE(test::any_contains(warnings_of(ddp), "does not fit: with Adam"));
  scenario["cluster"]["device"]["memory_gbytes"] = 192;
  EXPECT_EQ(shortage_of(scenario), "");
  scenario["cluster"]["device"].erase("memory_gbytes");  // nobody said
  EXPECT_EQ(shortage_of(scenario), "");
}

// At each sweep point its own, also from rows that were evaluated in another process.
TEST(Memory, IsThatOfEachRow) {
  Json scenario = scenario_of(10, 1, "fp32");
  add(scenario, "fsdp", R"({"units": ["layers.*"]})");
  scenario["sweep"] = {{"cluster.nodes", {1, 2}}};
  const Report report = test::studied(scenario);
  ASSERT_EQ(report.rows.size(), 2u);
  EXPECT_DOUBLE_EQ(counted(report.rows[0].memory), 16e9 / 8);
  EXPECT_DOUBLE_EQ(counted(report.rows[1].memory), 16e9 / 16);
  const Row back = row_from_bytes(row_bytes(report.rows[1]));
  EXPECT_EQ(back.memory.total(), report.rows[1].memory.total());
}

// What does not fit with its activations does not fit, in every sentence; what would is said with
// them too.
TEST(Memory, ActivationsCount) {
  Json scenario = scenario_of(1, 1, "fp32");
  scenario["workload"] = {
      {"name", "r"}, {"batch", 4096}, {"operators", {{"architecture", "resnet50"}}}};
  scenario["cluster"]["device"] = "a100-sxm-40gb";
  add(scenario, "pytorch", "{}");
  const Scenario read = test::parsed(scenario);
  const auto uncertainty = memory_uncertainty(read, read.strategies.front());
  ASSERT_TRUE(uncertainty);
  EXPECT_TRUE(contains(*uncertainty, "does not fit"));
  EXPECT_TRUE(contains(*uncertainty, "of them activations"));
  EXPECT_TRUE(contains(shortage_of(scenario), "'pytorch{}' with micro-batches of "))
      << shortage_of(scenario);
  EXPECT_TRUE(contains(shortage_of(scenario), " GB and fits: --set workload.batch="));

  scenario["workload"] = {
      {"name", "l"},
      {"batch", 4},
      {"operators", {{"architecture", "llama3_8b"}, {"dtype", "bf16"}, {"sequence", 4096}}}};
  scenario["cluster"]["device"] = "h100-sxm";
  const std::string shortage = shortage_of(scenario);
  EXPECT_TRUE(contains(shortage, "'FSDP2' with ")) << shortage;
  EXPECT_TRUE(contains(shortage, " recomputation needs ")) << shortage;
  EXPECT_TRUE(contains(shortage, " GB and fits")) << shortage;
}

}  // namespace
}  // namespace syncline::measure
