// What a rank of a job that is cut holds, by its stage: counted by hand, and as measured by others.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "studies/fidelity/cases.h"
#include "studies/rows/fitting.h"
#include "studies/rows/memory.h"
#include "tests/support/full_scenario.h"
#include "tests/support/text.h"

namespace syncline::measure {
namespace {

using test::contains;

constexpr double kLayers = 8, kHidden = 256, kHeads = 4, kInner = 512, kWords = 1000;
constexpr double kTokens = 128, kRows = 2 * kTokens;

// A small Llama in bf16 on 4 nodes of 4 GPUs, by Megatron.
Json job(const Json& parallel, int micro_batches = 8) {
  Json scenario = Json::parse(R"({
    "name": "w",
    "workload": {"name": "small", "batch": 2,
                 "operators": {"architecture": "llama", "dtype": "bf16", "sequence": 128,
                               "optimizer": "adam",
                               "shape": {"layers": 8, "hidden": 256, "heads": 4, "kv_heads": 2,
                                         "inner": 512, "words": 1000}}},
    "cluster": {"name": "c", "nodes": 4, "gpus_per_node": 4, "device": "a100-sxm-40gb",
                "intra": {"latency_us": 3, "bandwidth_gbps": 1200},
                "inter": {"latency_us": 10, "bandwidth_gbps": 100}},
    "strategies": [{"name": "m", "dialect": "megatron", "config": {}}]})");
  scenario["workload"]["micro_batches"] = micro_batches;
  scenario["workload"]["parallel"] = parallel;
  return scenario;
}

std::vector<Memory> stages_of(const Json& scenario) {
  const Scenario read = test::parsed(scenario);
  return memory_by_stage(read, read.strategies.front());
}

double activations(const Json& scenario, std::size_t stage = 0) {
  return stages_of(scenario)[stage].activations;
}

// Inputs of both norms and what they give, query, key, value and what attention gives, then gate,
// up and their product: two bytes each.
double layer_bytes(double tensor) {
  const double heads = 2 * kHidden + 2 * kHidden / 2;
  return 2 * kRows * (4 * kHidden + heads + 3 * kInner) / tensor;
}

TEST(WholeMemory, StatesAreThoseOfTheStagesTensors) {
  Json scenario = job({{"tensor", 2}, {"pipeline", 4}});
  const double layer =
      (2 * kHidden * kHidden + kHidden * kHidden + 3 * kHidden * kInner) / 2 + 2 * kHidden;
  const double table = kWords / 2 * kHidden;
  for (const bool sharded : {false, true}) {
    scenario["strategies"][0]["config"]["use-distributed-optimizer"] = sharded;
    const auto stages = stages_of(scenario);
    ASSERT_EQ(stages.size(), 4u);
    for (std::size_t s = 0; s < 4; ++s) {
      const double own = 2 * layer + (s == 0 ? table : s == 3 ? table + kHidden : 0);
      EXPECT_EQ(stages[s].stage, static_cast<int>(s));
      EXPECT_DOUBLE_EQ(stages[s].weights, 2 * own) << s;
      EXPECT_DOUBLE_EQ(stages[s].gradients, 4 * own) << s;
      EXPECT_DOUBLE_EQ(stages[s].optimizer, 12 * own / (sharded ? 2 : 1)) << s;
    }
  }
}

// Four GPUs a stage share each layer's experts by two: those are summed by two ranks, the dense
// tensors by four.
TEST(WholeMemory, ExpertsAreShardedOverTheirOwnGroup) {
  Json scenario = job({{"expert", 2}, {"pipeline", 4}});
  Json& shape = scenario["workload"]["operators"]["shape"];
  shape["experts"] = 4;
  shape["experts_per_token"] = 1;
  shape["expert_inner"] = 64;
  scenario["strategies"][0]["config"]["use-distributed-optimizer"] = true;
  const double experts = 2 * (4 / 2) * 3 * kHidden * 64;
  const double dense = 2 * (3 * kHidden * kHidden + 2 * kHidden + 4 * kHidden);
  const Memory inner = stages_of(scenario)[1];
  EXPECT_DOUBLE_EQ(inner.weights, 2 * (experts + dense));
  EXPECT_DOUBLE_EQ(inner.optimizer, 12 * (experts / 2 + dense / 4));
}

// The schedules' own counts of what is under way: as many micro-batches as stages stand behind it
// (1F1B), all of them (GPipe), Megatron's chunks ahead (interleaved).
TEST(WholeMemory, ActivationsAreThoseUnderWay) {
  const auto under_way = [](const Json& parallel, int micro_batches) {
    const auto stages = stages_of(job(parallel, micro_batches));
    const double chunks = parallel.value("virtual_stages", 1);
    return stages[1].activations / (layer_bytes(1) * 8 / (4 * chunks));
  };
  EXPECT_DOUBLE_EQ(under_way({{"pipeline", 4}}, 8), 3);
  EXPECT_DOUBLE_EQ(under_way({{"pipeline", 4}}, 2), 2);
  EXPECT_DOUBLE_EQ(under_way({{"pipeline", 4}, {"schedule", "gpipe"}}, 8), 8);
  EXPECT_DOUBLE_EQ(under_way({{"pipeline", 4}, {"virtual_stages", 2}}, 8), 2 * 2 + 4 + 1);
  const auto most = [](const Json& parallel) { return activations(job(parallel, 8)); };
  EXPECT_DOUBLE_EQ(most({{"pipeline", 4}}), 4 * 2 * layer_bytes(1));
  EXPECT_DOUBLE_EQ(most({{"pipeline", 4}, {"schedule", "zero_bubble"}}), most({{"pipeline", 4}}));
}

TEST(WholeMemory, SequenceAndContextCutActivations) {
  const auto inner = [](const Json& parallel) { return activations(job(parallel), 1); };
  constexpr double kUnderWay = 3, kOfStage = 2;
  EXPECT_DOUBLE_EQ(inner({{"tensor", 2}, {"sequence", true}, {"pipeline", 4}}),
                   kUnderWay * kOfStage * layer_bytes(2));
  EXPECT_DOUBLE_EQ(inner({{"context", 2}, {"pipeline", 4}}), kUnderWay * kOfStage * layer_bytes(2));
  // Without it the norms' inputs and results stay whole.
  const double whole = 2 * kRows * 4 * kHidden;
  const double rest = layer_bytes(1) - whole;
  EXPECT_DOUBLE_EQ(inner({{"tensor", 2}, {"pipeline", 4}}),
                   kUnderWay * kOfStage * (whole + rest / 2));
}

// Korthikanti et al. 2022, equation 2 and table 2: s b h (10 + 24 / t + 5 a s / (h t)) a layer by
// t tensor ranks; without the last term by selective recomputation; 2 s b h by full, beside the
// one layer that is computed again.
TEST(WholeMemory, RecomputationIsWhatWasPublished) {
  Json scenario = job({{"tensor", 2}, {"pipeline", 2}}, 1);
  scenario["workload"]["operators"]["architecture"] = "gpt2";
  scenario["workload"]["operators"]["shape"] = {
      {"layers", kLayers}, {"hidden", kHidden}, {"heads", kHeads}, {"words", kWords}};
  const double unit = kRows * kHidden;
  const double scores = 5 * kHeads * kTokens / (kHidden * 2);
  const double held = kLayers / 2;  // layers
  const double embedded = unit;     // the mask of the dropout behind the embedding
  const auto with = [&](const char* what) {
    scenario["workload"]["activation_checkpointing"] = what;
    return activations(scenario);
  };
  const double all = unit * (10 + 24.0 / 2 + scores);
  EXPECT_NEAR(with("none") / (held * all + embedded), 1, 0.02);
  EXPECT_NEAR(with("selective") / (held * unit * 22 + unit * scores + embedded), 1, 0.02);
  EXPECT_NEAR(with("full") / (held * 2 * unit + all - 2 * unit + embedded), 1, 0.03);
  // Every second layer keeps all, the others their inputs.
  scenario["workload"]["checkpointing_every"] = 2;
  EXPECT_NEAR(with("full") / (held / 2 * (all + 2 * unit) + all - 2 * unit + embedded), 1, 0.03);
}

// Ranks of a sequence hold its keys and values in PyTorch, each in Megatron a part of them.
TEST(WholeMemory, RingAttentionGathersInPyTorch) {
  const auto buffers = [](const char* dialect, int context, int tokens) {
    Json scenario = job(context > 1 ? Json{{"context", context}} : Json::object(), 1);
    scenario["workload"]["operators"]["sequence"] = tokens;
    scenario["strategies"][0] = {{"name", "s"}, {"dialect", dialect}, {"config", Json::object()}};
    return stages_of(scenario).front().buffers;
  };
  constexpr int kLocal = static_cast<int>(kTokens);
  const double keys_and_values = 2 * 2 * kRows * kHidden * 2;
  EXPECT_NEAR(buffers("fsdp", 2, 2 * kLocal) - buffers("fsdp", 1, kLocal), keys_and_values, 1);
  EXPECT_NEAR(buffers("megatron", 2, 2 * kLocal) - buffers("megatron", 1, kLocal), 0, 1);
}

// torchtitan's "op" (its distributed/activation_checkpoint.py): of a layer of Llama's the input,
// the products of q, v, gate and down, and attention's result stay; in FP8 only input and attention
// do.
TEST(WholeMemory, EverySecondProductStays) {
  Json scenario = job(Json::object(), 1);
  Json& operators = scenario["workload"]["operators"];
  operators = {{"architecture", "llama"},
               {"sequence", kTokens},
               {"dtype", "bf16"},
               {"shape",
                {{"layers", kLayers},
                 {"hidden", kHidden},
                 {"heads", kHeads},
                 {"kv_heads", kHeads},
                 {"inner", 4 * kHidden},
                 {"words", 16},
                 {"positions", kTokens}}}};
  const auto per_layer = [&](const char* what) {
    scenario["workload"]["activation_checkpointing"] = what;
    operators["shape"]["layers"] = kLayers;
    const double few = activations(scenario);
    operators["shape"]["layers"] = 2 * kLayers;
    return (activations(scenario) - few) / kLayers / (2 * kRows * kHidden);
  };
  constexpr double kInput = 1, kAttention = 1, kProducts = 1 + 1 + 4 + 1;
  EXPECT_NEAR(per_layer("full"), kInput, 0.01);
  EXPECT_NEAR(per_layer("products"), kInput + kAttention + kProducts, 0.05);
  operators["dtype"] = "fp8";
  EXPECT_NEAR(per_layer("products"), kInput + kAttention, 0.05);
}

TEST(WholeMemory, AJobThatDoesNotFitNamesASchemeThatDoes) {
  Json scenario = job({{"tensor", 2}, {"pipeline", 4}});
  const auto shortage = [&](double bytes) {
    scenario["cluster"]["device"] = {
        {"name", "D"}, {"tflops", 1}, {"memory_gbytes_per_s", 1}, {"memory_gbytes", bytes / 1e9}};
    return memory_shortage(input::document_of("m.json", scenario), test::parsed(scenario)).words();
  };
  const Memory memory = stages_of(scenario).front();
  EXPECT_EQ(shortage(memory.total() + 1), "");
  const std::string full = shortage(memory.total() - 1);
  EXPECT_TRUE(contains(full, "'m' with Adam needs " + gigabytes(memory.total()) +
                                 " GB per GPU in stage 0 of 4, " + gigabytes(memory.activations) +
                                 " of them activations, D has "))
      << full;
  EXPECT_TRUE(contains(full, " needs ") && contains(full, " GB and fits: ")) << full;
  const std::string states = shortage(0.95 * memory.states());
  EXPECT_TRUE(contains(states, "'Megatron, distributed optimizer'")) << states;
  const std::string none = shortage(1e5);
  EXPECT_TRUE(none.ends_with("the least of all that was tried, and does not fit either")) << none;
}

// MooreThreads/SimuMax ran Megatron-LM 0.14 on 8 B200, bf16, distributed optimizer, no
// recomputation, one sample a micro-batch, 4 of them: torch.cuda.max_memory_allocated of the
// fullest rank. Layers are cut to 12 and 4. Nothing is fitted.
TEST(WholeMemory, IsWhatOthersMeasured) {
  int rows = 0;
  for (const MemoryCase& one :
       published_memory(SYNCLINE_SOURCE_DIR "/scenarios/measured/memory.json")) {
    if (!contains(one.source, "SimuMax")) continue;
    ++rows;
    EXPECT_LT(std::abs(one.error_percent()), 10) << one.job << ": " << one.said;
  }
  EXPECT_EQ(rows, 19);
}

}  // namespace
}  // namespace syncline::measure
