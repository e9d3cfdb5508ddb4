// A scenario to begin with: it is read as it is, says what it assumed, and refuses what it cannot
// make anything of.
#include "imports/init.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "catalogue/architectures/architecture.h"
#include "catalogue/hardware/device.h"
#include "core/metrics.h"
#include "formats/input/document.h"
#include "imports/init_question.h"
#include "studies/rows/fitting.h"
#include "studies/rows/memory.h"
#include "studies/study/study_calibration.h"
#include "tests/support/jobs.h"

namespace syncline::job {
namespace {

using test::contains;

Scenario begun_as(const InitOptions& options) {
  return test::scenario_in(init_scenario(options).scenario);
}

std::string refusal_of(const InitOptions& options) {
  return test::input_error([&] { (void)init_scenario(options); });
}

bool says(const Begun& begun, const std::string& words) {
  return test::any_contains(begun.assumed, words);
}

TEST(Init, EveryArchitectureIsAScenario) {
  for (const auto& row : operators::architectures()) {
    if (row.shaped) continue;
    const Scenario scenario = begun_as({.model = std::string(row.name), .node = "dgx-h100"});
    EXPECT_GT(backward_time(scenario.workload), 0) << row.name;
    EXPECT_TRUE(scenario.workload.rated_times) << row.name;
    EXPECT_EQ(scenario.baseline, scenario.strategies.front().name);
  }
}

TEST(Init, EveryNodeIsACluster) {
  for (const auto& node : hardware::nodes()) {
    const Scenario scenario =
        begun_as({.model = "gpt2_small", .node = std::string(node.name), .nodes = 3});
    EXPECT_EQ(scenario.cluster.ranks(), 3 * node.gpus) << node.name;
  }
}

TEST(Init, GivenValuesAreNotListedAsAssumed) {
  InitOptions options{.model = "llama3.2_1b", .node = "dgx-h100", .nodes = 4};
  const Begun guessed = init_scenario(options);
  for (const char* words : {"(--batch)", "(--sequence)", "(--dtype", "latencies assumed"}) {
    EXPECT_TRUE(says(guessed, words)) << words;
  }
  options.batch = 2;
  options.sequence = 512;
  options.dtype = "fp32";
  options.compiled = true;
  const Begun given = init_scenario(options);
  EXPECT_FALSE(says(given, "(--"));
  const Scenario scenario = test::scenario_in(given.scenario);
  EXPECT_EQ(scenario.workload.batch, 2);
  EXPECT_EQ(scenario.workload.tensors.front().dtype, DType::kFp32);
  EXPECT_EQ(given.scenario["workload"]["operators"]["sequence"], 512);
  // Everything that was assumed stands in the file too.
  for (const std::string& line : given.assumed) {
    EXPECT_TRUE(contains(given.scenario.dump(), line)) << line;
  }
}

// TF32 is a format of products alone: gradients stay in fp32, and nothing is cast.
TEST(Init, Tf32) {
  InitOptions options{.model = "gpt2_medium", .node = "dgx-h100", .nodes = 4, .dtype = "fp32"};
  const Scenario exact = begun_as(options);
  options.dtype = "tf32";
  const Scenario rounded = begun_as(options);
  EXPECT_EQ(rounded.workload.tensors.front().dtype, DType::kFp32);
  EXPECT_EQ(rounded.workload.operators->operators.size(),
            exact.workload.operators->operators.size());
  EXPECT_LT(rounded.workload.forward, exact.workload.forward / 2);
}

TEST(Init, SaysTheAssumedRatePerFormat) {
  for (const auto& [dtype, has, lacks] :
       {std::tuple("fp8", "dgx-h100", "dgx-a100"), {"tf32", "dgx-a100", "p3dn.24xlarge"}}) {
    InitOptions options{.model = "gpt2_medium", .node = has, .nodes = 1, .dtype = dtype};
    EXPECT_TRUE(says(init_scenario(options), "as data sheets have it")) << dtype;
    options.node = lacks;
    EXPECT_TRUE(says(init_scenario(options), std::string("has none in ") + dtype)) << dtype;
  }
}

// PyTorch's modules run as they come; compiled ones are a kernel each, launched in 5 us. Frameworks
// that cut a job have kernels of their own.
TEST(Init, ModulesRunAsTheyComeUnlessCompiled) {
  InitOptions options{.model = "gpt2_medium", .node = "dgx-h100", .nodes = 1};
  const Begun eager = init_scenario(options);
  EXPECT_EQ(eager.scenario["workload"]["operators"]["eager"], true);
  EXPECT_TRUE(says(eager, "not compiled (--compiled)"));
  options.compiled = true;
  const Begun compiled = init_scenario(options);
  EXPECT_FALSE(compiled.scenario["workload"]["operators"].contains("eager"));
  const Scenario fast = test::scenario_in(compiled.scenario);
  EXPECT_NEAR(fast.cluster.device.launch, 5e-6, 1e-12);
  EXPECT_LT(fast.workload.forward, test::scenario_in(eager.scenario).workload.forward);
  options.parallel = {{"tensor", 2}};
  EXPECT_TRUE(contains(refusal_of(options), "--compiled has no meaning with a job that is cut"));
  options.compiled = false;
  EXPECT_FALSE(init_scenario(options).scenario["workload"]["operators"].contains("eager"));
}

// Half precision is the device's: V100 has no bf16. Under autocast gradients are in fp32.
TEST(Init, ANodeMayBeTheUsersOwn) {
  InitOptions options{.model = "gpt2_medium", .node = "", .nodes = 4, .gpu = "rtx-3090", .gpus = 2};
  options.net = "25gbit";
  const Cluster cards = begun_as(options).cluster;
  EXPECT_EQ(cards.ranks(), 8);
  EXPECT_NEAR(cards.tiers[0].bandwidth, 5.5e9, 1e3);  // through host memory
  EXPECT_NEAR(cards.tiers[1].bandwidth, 25e9 / 8, 1);
  EXPECT_EQ(cards.fabric, Fabric::kTcp);
  EXPECT_EQ(cards.nccl.gpu_direct, false);
  options.net = "200gbit:rdma";
  EXPECT_EQ(begun_as(options).cluster.nccl.gpu_direct, false);  // GeForce has none
  options.gpu = "H100-SXM";
  options.gpus = 8;
  options.net = "4x200gbit:efa";
  const Cluster boxes = begun_as(options).cluster;
  EXPECT_NEAR(boxes.tiers[0].bandwidth, 450e9, 1);
  EXPECT_EQ(boxes.tiers[1].nics, 4);
  EXPECT_EQ(boxes.fabric, Fabric::kEfa);
  EXPECT_EQ(boxes.nccl.gpu_direct, true);
  EXPECT_NEAR(boxes.tiers[1].latency, 15e-6, 1e-12);
  options.nodes = options.gpus = 1;
  options.net.clear();
  EXPECT_EQ(begun_as(options).cluster.ranks(), 1);
  for (const char* wrong : {"fast", "25", "25gbit:", "25gbit:ib", "0x25gbit", "1.5x25gbit",
                            "-1gbit", "1e300gbit", "nangbit", "99x1gbit"}) {
    options.net = wrong;
    EXPECT_TRUE(contains(refusal_of(options), "--net: found '" + std::string(wrong))) << wrong;
  }
  options.gpu = "h1000";
  EXPECT_TRUE(contains(refusal_of(options), "--gpu: 'h1000' is not known"));
}

// Steps that were measured are explained: one node's by the device, the others by the network.
TEST(Init, StepsThatWereMeasuredAreFitted) {
  InitOptions options{
      .model = "gpt2_medium", .node = "", .nodes = 4, .gpu = "a10", .net = "25gbit"};
  options.steps = {{1, 1.2}, {2, 2.0}, {4, 4.0}};
  const Begun begun = init_scenario(options);
  const auto fitted = measure::calibrate_document(input::document_of("begun", begun.scenario));
  const auto step_time = [](const Scenario& scenario) {
    const auto executor = run::make_model_executor({scenario.cluster, {}, 1});
    collective::CostCache cache(scenario.cluster);
    return measure::evaluate_strategy(scenario, scenario.strategies.front(), *executor, cache)
        .metrics.step_time;
  };
  const Scenario scenario = input::parse_scenario(fitted.document);
  EXPECT_EQ(scenario.cluster.nodes, 4);
  EXPECT_NEAR(step_time(scenario), 4.0, 0.02);
  Json alone = begun.scenario;
  for (const char* key : {"sweep", "published", "calibration"}) alone.erase(key);
  alone["cluster"]["nodes"] = 1;
  EXPECT_NEAR(step_time(test::scenario_in(alone)), 1.2, 0.01);
}

// A step of few samples is as long as its host takes to launch it, whatever the device's rates.
TEST(Init, AStepThatWaitsForItsHostTellsTheHostsPace) {
  InitOptions options{.model = "gpt2_small", .node = "dgx-h100", .nodes = 1, .batch = 1};
  options.sequence = 128;
  const Scenario guessed = begun_as(options);
  options.steps = {{1, 0.02}};
  const Scenario fast = begun_as(options);
  options.steps = {{1, 0.2}};
  const Scenario slow = begun_as(options);
  EXPECT_LT(fast.cluster.device.launch, guessed.cluster.device.launch);
  EXPECT_GT(slow.cluster.device.launch, 2 * guessed.cluster.device.launch);
  EXPECT_EQ(slow.cluster.device.half_flops, guessed.cluster.device.half_flops);
  EXPECT_NEAR(slow.workload.forward + backward_time(slow.workload) + slow.workload.update, 0.2,
              0.02);
  options.batch = 256;  // products decide
  options.sequence = 1024;
  EXPECT_EQ(begun_as(options).cluster.device.launch, guessed.cluster.device.launch);
}

TEST(Init, HalfPrecisionIsTheDevices) {
  const auto dtype = [](const char* node) {
    const Begun begun = init_scenario({.model = "bert_base", .node = node});
    EXPECT_EQ(test::scenario_in(begun.scenario).workload.tensors.front().dtype, DType::kFp32);
    return begun.scenario["workload"]["operators"]["dtype"].get<std::string>();
  };
  EXPECT_EQ(dtype("dgx-1"), "fp16");
  EXPECT_EQ(dtype("dgx-a100"), "bf16");
  EXPECT_TRUE(says(init_scenario({.model = "bert_base", .node = "dgx-1", .dtype = "bf16"}),
                   "in bf16 at the rate of fp32, as NVIDIA V100 SXM2 16 GB has no fast ones"));
}

// DDP's copies do not fit: FSDP2 is written, in the format of the products that autocast takes. The
// loss holds 12 bytes per word of the logits.
TEST(Init, AModelThatDoesNotFitGetsAnotherScheme) {
  const Begun large = init_scenario({.model = "llama3_8b", .node = "dgx-h100"});
  EXPECT_TRUE(large.assumed.front().starts_with("'FSDP2' in place of 'DDP's default', which needs"))
      << large.assumed.front();
  EXPECT_TRUE(contains(large.assumed.front(), "'DDP's default' with Adam (assumed) needs 225 GB"));
  EXPECT_EQ(large.scenario["strategies"][0]["config"]["mp_policy"]["param_dtype"], "bfloat16");
  EXPECT_FALSE(large.scenario["workload"].contains("activation_checkpointing"));
  const Begun small = init_scenario({.model = "gpt2_small", .node = "dgx-h100"});
  EXPECT_FALSE(says(small, "in place of"));
}

// Llama 3 8B on 32 A100 of 40 GB: sharded states fit, activations do not.
TEST(Init, AModelThatDoesNotFitIsRecomputed) {
  InitOptions options{.model = "llama3_8b", .node = "", .nodes = 4, .gpu = "a100-sxm-40gb"};
  options.gpus = 8;
  options.net = "100gbit";
  const Begun begun = init_scenario(options);
  EXPECT_TRUE(says(begun,
                   "'FSDP2' with full recomputation in place of 'DDP's default' "
                   "(--recompute), which needs "));
  EXPECT_EQ(begun.scenario["baseline"], "FSDP2");
  EXPECT_EQ(begun.scenario["workload"]["activation_checkpointing"], "full");
  options.recompute = "none";
  const Begun given = init_scenario(options);
  EXPECT_FALSE(given.scenario["workload"].contains("activation_checkpointing") &&
               given.scenario["workload"]["activation_checkpointing"] != "none");
  options.recompute = "full";
  options.fsdp = true;
  const Begun asked = init_scenario(options);
  EXPECT_FALSE(says(asked, "in place of"));
  EXPECT_EQ(asked.scenario["strategies"], begun.scenario["strategies"]);
}

// The mesh of a job of shards in nodes follows the number of nodes, as --set and sweeps change it.
TEST(Init, MeshesFollowTheNodes) {
  InitOptions options{.model = "llama3_8b", .node = "", .nodes = 4, .gpu = "a100-sxm-80gb"};
  options.gpus = 8;
  options.net = "100gbit:tcp";
  options.fsdp = true;
  const Begun begun = init_scenario(options);
  ASSERT_TRUE(contains(begun.scenario["strategies"].dump(), "\"mesh\":[-1,8]"));
  for (const int nodes : {1, 2, 8, 64}) {
    Json other = begun.scenario;
    other["cluster"]["nodes"] = nodes;
    const Scenario scenario = test::scenario_in(other);
    for (const Strategy& strategy : scenario.strategies) {
      if (strategy.hierarchy.form != Hierarchy::Form::kSharded) continue;
      EXPECT_EQ(shard_ranks(strategy, scenario.cluster.ranks()), 8) << nodes;
    }
  }
  options.steps = {{2, 30.0}, {4, 31.0}};
  const Json measured = init_scenario(options).scenario;
  EXPECT_EQ(measured["sweep"]["cluster.nodes"], Json({4, 2}));
}

// A batch that was given stays; what would make it fit is said as `run` says it.
TEST(Init, RemediesAreThoseOfRun) {
  InitOptions options{.model = "llama3_8b", .node = "", .nodes = 4, .gpu = "a100-sxm-40gb"};
  options.gpus = 8;
  options.net = "100gbit:tcp";
  options.batch = 64;
  const Begun begun = init_scenario(options);
  EXPECT_EQ(begun.scenario["workload"]["batch"], 64);
  input::Document document = input::document_of("init", begun.scenario);
  document.file = "FILE";
  const std::string words =
      measure::memory_shortage(document, input::parse_scenario(document)).words();
  ASSERT_TRUE(contains(words, "and fits: ")) << words;
  EXPECT_TRUE(says(begun, words)) << words;
}

// Layers that are cut are cut in norms and residuals too, which is said.
TEST(Init, SequenceParallelismIsAssumedWithTensorParallelism) {
  InitOptions options{.model = "llama3_8b", .node = "dgx-h100", .nodes = 2};
  options.parallel = {{"tensor", 4}};
  const Begun begun = init_scenario(options);
  EXPECT_TRUE(says(begun, "sequence parallelism"));
  EXPECT_EQ(begun.scenario["workload"]["parallel"]["sequence"], true);
  options.parallel["sequence"] = true;
  const Begun given = init_scenario(options);
  EXPECT_FALSE(says(given, "sequence parallelism"));
  EXPECT_EQ(given.scenario["workload"]["parallel"], begun.scenario["workload"]["parallel"]);
}

// Recomputation of every second layer, which the settings say, gives way to that of every layer.
TEST(Init, RecomputationOfSomeLayersBecomesThatOfAll) {
  InitOptions options{.model = "llama3_8b", .node = "", .nodes = 4, .gpu = "a100-sxm-40gb"};
  options.gpus = 8;
  options.net = "100gbit";
  options.fsdp = true;
  Json scenario = init_scenario(options).scenario;
  scenario["workload"]["checkpointing_every"] = 2;
  const input::Document document = input::document_of("init", scenario);
  ASSERT_FALSE(measure::memory_lack(input::parse_scenario(document)).empty());
  const measure::Remedy remedy = measure::remedy_of(document, {.recompute = true});
  EXPECT_TRUE(remedy.fits);
  EXPECT_EQ(remedy.workload, Json({{"checkpointing_every", 1}}));
  EXPECT_TRUE(contains(remedy.words(), "recomputation of every layer")) << remedy.words();
}

// A file of DeepSpeed's stage takes as long as the option; compiled modules are faster. Megatron
// has kernels of its own.
TEST(Init, SettingsTrainModulesThatAreCompiledOrNot) {
  InitOptions options{.model = "llama3.2_1b", .node = "dgx-a100-80gb", .nodes = 4};
  options.zero = 3;
  options.batch = 8;
  const Seconds by_option = begun_as(options).workload.forward;
  options.zero = {};
  options.batch = {};
  const test::Scratch scratch;
  options.settings = scratch.path("ds.json");
  test::write_text(options.settings,
                   R"({"zero_optimization": {"stage": 3}, "bf16": {"enabled": true},
                       "train_micro_batch_size_per_gpu": 8})");
  const Begun begun = init_scenario(options);
  EXPECT_TRUE(says(begun, "not compiled (--compiled)"));
  EXPECT_EQ(begun.scenario["workload"]["operators"]["eager"], true);
  EXPECT_NEAR(test::scenario_in(begun.scenario).workload.forward / by_option, 1, 0.03);
  options.settings = scratch.path("arguments.json");
  test::write_text(options.settings,
                   R"({"output_dir": "x", "per_device_train_batch_size": 8, "bf16": true,
                       "torch_compile": true})");
  EXPECT_FALSE(says(init_scenario(options), "not compiled"));
  options.settings = "--tensor-model-parallel-size 1 --micro-batch-size 1 --bf16";
  EXPECT_FALSE(init_scenario(options).scenario["workload"]["operators"].contains("eager"));
}

// A step keeps its samples in smaller micro-batches, and what is given stays.
TEST(Init, AModelThatDoesNotFitGetsMicroBatches) {
  InitOptions options{.model = "llama3_70b", .node = "dgx-a100-80gb", .nodes = 3, .sequence = 1024};
  const Begun begun = init_scenario(options);
  const Json& workload = begun.scenario["workload"];
  EXPECT_EQ(workload["batch"].get<int>() * workload.value("micro_batches", 1), 8);
  EXPECT_LT(workload["batch"], 8);
  EXPECT_TRUE(says(begun, "--batch, --micro-batches)"));
  options.batch = 8;
  const Begun given = init_scenario(options);
  EXPECT_EQ(given.scenario["workload"]["batch"], 8);
  EXPECT_FALSE(given.scenario["workload"].contains("parallel"));
}

// Whatever is asked, what is written fits or is said not to.
TEST(Init, TheWrittenJobFits) {
  struct Asked {
    const char* model;
    const char* node;
    int nodes;
    bool fsdp;
    std::optional<int> zero;
  };
  for (const auto& [model, node, nodes, fsdp, zero] :
       {Asked{"gpt2_small", "dgx-1", 4, true, {}}, Asked{"llama3.2_1b", "dgx-1", 1, false, {}},
        Asked{"llama3.2_1b", "dgx-a100", 1, false, 1}, Asked{"llama3_8b", "dgx-1", 1, false, {}},
        Asked{"llama3_8b", "dgx-1", 4, false, 2}, Asked{"llama3_8b", "dgx-a100", 2, true, {}},
        Asked{"llama3_70b", "dgx-a100", 1, false, {}},
        Asked{"llama3_70b", "dgx-h100", 2, false, 3}}) {
    InitOptions options{.model = model, .node = node, .nodes = nodes};
    options.fsdp = fsdp;
    options.zero = zero;
    const Begun begun = init_scenario(options);
    const Scenario scenario = test::scenario_in(begun.scenario);
    const bool fit = std::ranges::all_of(scenario.strategies, [&](const Strategy& each) {
      return measure::memory_of(scenario, each).fits();
    });
    EXPECT_NE(fit, says(begun, "that it fits, which it does not")) << model << " " << node;
  }
}

// Settings alone are one strategy: the answer says that it does not fit, whoever wrote them.
TEST(Init, SettingsThatDoNotFit) {
  const test::Scratch scratch;
  const std::string stage = scratch.path("ds.json");
  test::write_text(stage, R"({"bf16": {"enabled": true}, "zero_optimization": {"stage": 2}})");
  const std::string fsdp = scratch.path("accelerate.yaml");
  test::write_text(fsdp,
                   "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\n"
                   "mixed_precision: bf16\nfsdp_config:\n  fsdp_version: 2\n");
  const std::string flags = "--tensor-model-parallel-size 1 --micro-batch-size 1 --bf16";
  for (const std::string& settings : {stage, fsdp, flags}) {
    for (const char* model : {"llama3_8b", "llama3_70b"}) {
      InitOptions options{.model = model, .node = "dgx-a100"};
      options.settings = settings;
      const Begun begun = init_scenario(options);
      EXPECT_EQ(begun.scenario["strategies"][0]["name"], "as configured");
      EXPECT_TRUE(contains(begun.assumed.front(), "'as configured'")) << begun.assumed.front();
      EXPECT_TRUE(contains(begun.assumed.front(), " GB")) << begun.assumed.front();
    }
  }
}

// A scheme that stays and is recomputed is not left out.
TEST(Init, AStageIsRecomputed) {
  InitOptions options{.model = "mixtral_8x7b", .node = "dgx-h100", .nodes = 4};
  options.zero = 3;
  const Begun begun = init_scenario(options);
  EXPECT_TRUE(begun.assumed.front().starts_with("'ZeRO stage 3' with full recomputation"))
      << begun.assumed.front();
  EXPECT_FALSE(says(begun, "left out"));
}

TEST(Init, AStageOfZero) {
  InitOptions options{.model = "llama3.2_1b", .node = "dgx-h100", .nodes = 2};
  options.zero = 2;
  const Begun begun = init_scenario(options);
  EXPECT_EQ(begun.scenario["baseline"], "ZeRO stage 2");
  EXPECT_EQ(begun.scenario["strategies"][0]["config"]["zero_optimization"]["stage"], 2);
  EXPECT_EQ(begun_as(options).workload.tensors.front().dtype, DType::kBf16);
  options.settings = "--tensor-model-parallel-size 2 --micro-batch-size 1";
  EXPECT_TRUE(contains(refusal_of(options), "--zero: remove it"));
  options.settings.clear();
  options.parallel = {{"tensor", 2}};
  EXPECT_TRUE(contains(refusal_of(options),
                       "--zero: Megatron trains a job that is cut by options; "
                       "DeepSpeed cuts by its own settings"));
  options.zero.reset();
  options.fsdp = true;
  EXPECT_TRUE(contains(refusal_of(options), "torchtitan shards and cuts: give its TOML"));
}

// If nothing fits, more nodes do: the job says how many, by a scheme of its framework.
TEST(Init, AJobThatFitsNowhereNamesMoreNodes) {
  const Begun moe = init_scenario({.model = "mixtral_8x7b", .node = "dgx-h100", .nodes = 1});
  EXPECT_TRUE(contains(moe.assumed.front(), "does not fit either: 'FSDP2' fits on 2 such nodes"))
      << moe.assumed.front();
  const Begun more = init_scenario({.model = "mixtral_8x7b", .node = "dgx-h100", .nodes = 2});
  EXPECT_FALSE(contains(more.assumed.front(), "does not fit either")) << more.assumed.front();
  InitOptions single;
  single.model = "llama3_8b";
  single.nodes = 1;
  single.gpu = "a100-sxm-80gb";
  single.gpus = 1;
  const Begun one = init_scenario(single);
  EXPECT_TRUE(contains(one.assumed.front(), "'FSDP2' fits on ")) << one.assumed.front();
}

// torchvision numbers ViT's layers by name: they are FSDP's units, and recomputed as layers.
TEST(Init, LayersOfAVisionTransformer) {
  InitOptions options{.model = "vit_b_16", .node = "dgx-h100", .nodes = 1};
  options.fsdp = true;
  EXPECT_EQ(init_scenario(options).scenario["strategies"][0]["config"]["units"],
            Json::array({"encoder.layers.*"}));
  const auto activations = [&](const char* again) {
    options.recompute = again;
    const Scenario read =
        input::parse_scenario(input::document_of("vit", init_scenario(options).scenario));
    return measure::memory_of(read, read.strategies.front()).activations;
  };
  EXPECT_LT(activations("full"), activations("none") / 4);
}

// As a flag --recompute wants "=" before its word; the word after it is none of the job's files.
TEST(Init, RecomputeTakesTheNextWord) {
  const auto recomputed = [](const std::string& model, std::vector<std::string> words) {
    InitQuestion question;
    question.model = model;
    question.words = std::move(words);
    question.recompute = "full";
    question.node = "dgx-h100";
    const Json workload = answer(question).scenario["workload"];
    return workload.value("activation_checkpointing", "") + " " +
           workload["name"].get<std::string>();
  };
  EXPECT_EQ(recomputed("llama3.2_1b", {"full"}), "full llama3.2_1b");
  EXPECT_EQ(recomputed("llama3.2_1b", {"selective"}), "selective llama3.2_1b");
  EXPECT_EQ(recomputed("products", {"llama3.2_1b"}), "products llama3.2_1b");
}

// A calibrated cluster gives links; how many nodes and GPUs there are, the options.
TEST(Init, MeasuredLinksOfOtherCounts) {
  const test::Scratch scratch;
  const std::string file = scratch.path("cluster.json");
  test::write_text(file, R"({"name": "calibrated", "nodes": 2, "gpus_per_node": 1,
    "intra": {"latency_us": 1, "bandwidth_gbps": 300},
    "inter": {"latency_us": 12, "bandwidth_gbps": 77}})");
  InitOptions options{.model = "gpt2_small", .node = "", .nodes = 4, .gpu = "a100-sxm-40gb"};
  options.gpus = 8;
  options.cluster = file;
  const Cluster cluster = begun_as(options).cluster;
  EXPECT_EQ(cluster.nodes, 4);
  EXPECT_EQ(cluster.gpus_per_node, 8);
  EXPECT_NEAR(cluster.tiers.back().bandwidth, 77e9 / 8, 1);
  EXPECT_EQ(cluster.device.memory_size, 40e9);
  EXPECT_TRUE(says(init_scenario(options), "measured on 2 x 1 GPUs, for 4 x 8"));
  options.nodes = options.gpus = 0;
  EXPECT_EQ(begun_as(options).cluster.ranks(), 2);
  // A launch says its own number of nodes.
  InitOptions launched = options;
  launched.gpus = 8;
  launched.settings =
      "torchrun --nproc_per_node 8 --nnodes 4 sft.py --per_device_train_batch_size 1 --bf16 True";
  EXPECT_EQ(begun_as(launched).cluster.nodes, 4);
  // GPUs of a node, too, if no kind of node says them.
  launched.gpus = 0;
  EXPECT_EQ(begun_as(launched).cluster.nodes, 4);
  EXPECT_EQ(begun_as(launched).cluster.gpus_per_node, 8);
  EXPECT_TRUE(says(init_scenario(launched), "8 GPUs a node, for the 32 processes"));
  // Measured with one GPU a node: the links inside are those of its kind.
  test::write_text(file, R"({"name": "calibrated", "nodes": 2, "gpus_per_node": 1,
    "inter": {"latency_us": 12, "bandwidth_gbps": 77}})");
  EXPECT_EQ(begun_as(launched).cluster.gpus_per_node, 8);
  EXPECT_GT(begun_as(launched).cluster.tiers.front().bandwidth, 100e9);
  EXPECT_TRUE(says(init_scenario(launched), "inside nodes as rated"));
  options.gpu.clear();
  EXPECT_TRUE(contains(refusal_of(options), "does not say which GPUs these are"));
}

TEST(Init, RoceIsAFabric) {
  InitOptions options{.model = "gpt2_small", .node = "", .nodes = 2, .gpu = "h100-sxm"};
  options.gpus = 8;
  options.net = "8x400gbit:roce";
  const Begun begun = init_scenario(options);
  EXPECT_EQ(begun.scenario["cluster"]["fabric"], "roce");
  EXPECT_EQ(test::scenario_in(begun.scenario).cluster.fabric, Fabric::kRdma);
  EXPECT_TRUE(says(begun, "RoCE as fast as InfiniBand of its rate"));
  EXPECT_FALSE(says(begun, "which decides much"));
  options.net = "8x400gbit";
  EXPECT_TRUE(says(init_scenario(options), "which decides much: give --net 8x400gbit:roce"));
}

TEST(Init, ModelFilesAreModelsToo) {
  const test::Scratch scratch;
  const std::string config = scratch.path("config.json");
  test::write_text(config, R"({"model_type": "gpt2", "n_embd": 64, "n_head": 4, "n_layer": 2,
                              "n_positions": 128, "vocab_size": 1000})");
  const Begun begun = init_scenario({.model = config, .node = "g5.48xlarge", .nodes = 2});
  EXPECT_EQ(begun.scenario["workload"]["operators"]["sequence"], 128);
  EXPECT_EQ(test::scenario_in(begun.scenario).workload.batch, 64);

  const std::string header = R"({"a.weight":{"dtype":"F32","shape":[4,4],"data_offsets":[0,64]}})";
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(header.size());
  const std::string weights = scratch.path("weights.safetensors");
  test::write_text(weights, bytes + header);
  const auto flops = [&](std::optional<std::int64_t> batch, std::optional<std::int64_t> sequence) {
    const Json scenario =
        init_scenario({.model = weights, .node = "dgx-h100", .batch = batch, .sequence = sequence})
            .scenario;
    (void)test::scenario_in(scenario);
    return scenario["workload"]["tensors"][0]["forward_flops"].get<double>();
  };
  EXPECT_DOUBLE_EQ(flops({}, {}), 2.0 * 16 * 1024);
  EXPECT_DOUBLE_EQ(flops(8, 256), 2.0 * 16 * 8 * 256);
  // Which of its dimensions a layout cuts, such a file does not tell.
  EXPECT_THROW(
      init_scenario({.model = weights, .node = "dgx-h100", .parallel = Json{{"tensor", 2}}}),
      InputError);
}

// Layouts by options: parts and inner collectives follow from the model by operators.
// Parts of a config that are not read are said, unless the settings have them.
TEST(Init, ConfigsNameTheirUnreadParts) {
  const test::Scratch scratch;
  const std::string file = scratch.path("config.json");
  const std::string config =
      R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 128,
          "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
          "vocab_size": 1000, "max_position_embeddings": 128)";
  const InitOptions options{.model = file, .node = "dgx-h100"};
  test::write_text(file, config + R"(, "architectures": ["LlamaModel"]})");
  EXPECT_TRUE(says(init_scenario(options), "LlamaModel has no language head"));
  EXPECT_TRUE(says(init_scenario(options), "128 tokens a sample (--sequence)"));
  EXPECT_FALSE(says(init_scenario(options), "operators.sequence"));
  test::write_text(file, config + R"(, "quantization_config": {"load_in_4bit": true}})");
  EXPECT_TRUE(says(init_scenario(options), "quantization_config is not read"));
  InitOptions adapted = options;
  adapted.settings = scratch.path("sft.yaml");
  test::write_text(adapted.settings,
                   "base_model: m\nadapter: qlora\nload_in_4bit: true\nlora_r: 8\n"
                   "lora_target_linear: true\nmicro_batch_size: 1\nsequence_len: 64\nbf16: true\n");
  EXPECT_TRUE(says(init_scenario(adapted), "frozen in 4 bits"));
  EXPECT_FALSE(says(init_scenario(adapted), "quantization_config"));
}

TEST(Init, AJobMayBeCut) {
  InitOptions options{
      .model = "llama3_70b",
      .node = "dgx-h100",
      .nodes = 8,
      .sequence = 8192,
      .parallel = {{"tensor", 4}, {"pipeline", 4}, {"virtual_stages", 5}, {"sequence", true}},
      .micro_batches = 64};
  const Scenario scenario = begun_as(options);
  const Parallel& parallel = scenario.workload.parallel;
  EXPECT_EQ(parallel.parts(), 20);
  EXPECT_EQ(parallel.schedule, Schedule::kInterleaved);
  EXPECT_EQ(scenario.workload.micro_batches, 64);
  EXPECT_EQ(scenario.workload.batch, 1);
  EXPECT_EQ(scenario.workload.tensors.front().part, 19);
  EXPECT_EQ(scenario.workload.tensors.back().part, 0);
  EXPECT_GT(parallel.forward.tensor, 0);
  EXPECT_EQ(scenario.strategies.front().dialect, "megatron");
  options.micro_batches.reset();
  EXPECT_TRUE(says(init_scenario(options), "16 micro-batches per step (--micro-batches)"));
}

// Whether every micro-batch sums its gradients no model says, and it decides the network's part.
TEST(Init, AccumulationWithoutNoSyncIsAStatedGuess) {
  InitOptions options{.model = "llama3.2_1b", .node = "dgx-h100", .nodes = 2, .micro_batches = 4};
  const Begun begun = init_scenario(options);
  EXPECT_TRUE(says(begun, "summed in each of the 4 micro-batches"));
  EXPECT_TRUE(says(begun, "the Trainer, Accelerate and Lightning set no_sync"));
  const Scenario scenario = begun_as(options);
  EXPECT_TRUE(scenario.strategies.front().each_micro_batch);
  const auto once = std::ranges::find(scenario.strategies, "DDP with no_sync", &Strategy::name);
  ASSERT_NE(once, scenario.strategies.end());
  EXPECT_FALSE(once->each_micro_batch);
  options.micro_batches = 1;
  EXPECT_FALSE(says(init_scenario(options), "no_sync"));
  EXPECT_EQ(begun_as(options).strategies.size(), 4u);
  // A job that is cut, or has a framework's settings, sums as that framework does.
  options.micro_batches = 4;
  options.parallel = {{"tensor", 2}};
  EXPECT_FALSE(says(init_scenario(options), "no_sync"));
}

// What the settings ask for and nothing costs is a note, which every verb repeats.
TEST(Init, SettingsWithoutEffectAreNoted) {
  const Begun begun =
      init_scenario({.model = "llama3_8b",
                     .node = "dgx-h100",
                     .settings = "--tensor-model-parallel-size 2 --delay-wgrad-compute "
                                 "--micro-batch-size 1"});
  EXPECT_EQ(begun.scenario.at("notes"),
            Json({"assumed: nothing gained or lost by what is left out: --delay-wgrad-compute"}));
  EXPECT_FALSE(
      init_scenario({.model = "llama3_8b", .node = "dgx-h100"}).scenario.contains("notes"));
}

TEST(Init, WrongProductsNameTheNumbers) {
  const auto refused = [](const char* model, Json parallel) {
    return refusal_of(
        {.model = model, .node = "dgx-h100", .nodes = 2, .parallel = std::move(parallel)});
  };
  EXPECT_EQ(
      refused("llama3_8b", {{"tensor", 4}, {"pipeline", 3}}),
      "init: workload.parallel.pipeline: tensor 4 x context 1 x pipeline 3 is 12 ranks, which "
      "do not divide the cluster's 16");
  const std::tuple<const char*, Json, const char*> layouts[] = {
      {"llama3_8b", {{"virtual_stages", 2}}, "needs a pipeline"},
      {"llama3_8b", {{"expert", 2}}, "has no experts"},
      {"mixtral_8x7b", {{"expert", 3}}, "do not divide a stage's 16 ranks"},
      {"llama3_8b", {{"pipeline", 1048576}, {"tensor", 1048576}}, "ranks"},
      {"resnet50", {{"tensor", 2}}, "is not cut"}};
  for (const auto& [model, parallel, words] : layouts) {
    EXPECT_TRUE(contains(refused(model, parallel), words)) << words;
  }
  const std::pair<const char*, const char*> settings[] = {
      {"--tensor-model-parallel-size 2 --micro-batch-size 3 --global-batch-size 16",
       "a step of 16 samples is no multiple of 3 per micro-batch x 4"},
      {"--tensor-model-parallel-size 3 --micro-batch-size 1 --global-batch-size 32",
       "is 3 ranks, which do not divide the cluster's 8"},
      {"nowhere.sh", "nowhere.sh: no such file of settings"}};
  for (const auto& [own, words] : settings) {
    const InitOptions options{.model = "llama3_8b", .node = "dgx-h100", .settings = own};
    EXPECT_TRUE(contains(refusal_of(options), words)) << words;
  }
  EXPECT_TRUE(
      contains(refusal_of({.model = "--tensor-model-parallel-size 2 --bf16", .node = "dgx-h100"}),
               "describe no known model"));
}

TEST(Init, UnknownNamesAreRefusedWithTheNearest) {
  EXPECT_EQ(refusal_of({.model = "llama3_8", .node = "dgx-h100"}),
            "model 'llama3_8' is neither an architecture nor a file (did you mean 'llama3_8b'?); "
            "`syncline list` names the architectures");
  EXPECT_EQ(refusal_of({.model = "gpt2_small", .node = "dgx-h10"}),
            "node 'dgx-h10' is not known (did you mean 'dgx-h100'?); `syncline list` names them");
  EXPECT_TRUE(contains(refusal_of({.model = "vgg16", .node = "dgx-h100", .sequence = 12}),
                       "--sequence has no meaning"));
  EXPECT_TRUE(
      contains(refusal_of({.model = "llama", .node = "dgx-h100"}), "neither an architecture"));
}

}  // namespace
}  // namespace syncline::job
