// YAML of NeMo, gpt-neox, Lightning and Composer: each as a job, by its framework's own rules.
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "imports/frameworks/keys.h"
#include "imports/frameworks/settings.h"
#include "imports/init.h"
#include "tests/support/jobs.h"

namespace syncline::job {
namespace {

using test::contains;

// Without the order of keys.
nlohmann::json in_any_order(const Json& json) { return nlohmann::json::parse(json.dump()); }
nlohmann::json in_text(const char* text) { return nlohmann::json::parse(text); }

class Trainers : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    test::write_text(folder_.path(name), text);
    return folder_.path(name);
  }
  Settings read(const std::string& text, const std::string& more = "") {
    return read_settings(write("a.yaml", text), more).value();
  }
  std::string refusal(const std::string& text) {
    const std::string said =
        test::input_error([&] { static_cast<void>(read_settings(write("a.yaml", text))); });
    return said.starts_with(folder_.folder()) ? said.substr(folder_.folder().size() + 1) : said;
  }
  // The scenario of it, read as every verb reads it.
  Scenario begun(const std::string& text, const std::string& model = "") {
    InitOptions options{.model = write("a.yaml", text), .node = "dgx-h100", .nodes = 4};
    if (!model.empty()) {
      options.settings = options.model;
      options.model = model;
    }
    return test::scenario_in(init_scenario(options).scenario);
  }

 private:
  const test::Scratch folder_;
};

// Sizes of a decoder of another kind give no name and no vocabulary.
TEST_F(Trainers, NeoxIsNoBert) {
  const Settings job = read(R"({"num-layers": 12, "hidden-size": 768, "num-attention-heads": 12,
    "seq-length": 2048, "max-position-embeddings": 2048, "norm": "rmsnorm", "pos-emb": "rotary",
    "no-weight-tying": true, "pipe-parallel-size": 1, "model-parallel-size": 1,
    "train_micro_batch_size_per_gpu": 4})");
  EXPECT_EQ(job.workload["name"], "a model of 12 layers, hidden 768");
  EXPECT_EQ(job.workload["operators"]["shape"]["words"], 50304);
}

TEST_F(Trainers, LightningsDataByOtherNames) {
  const std::string trainer = "trainer: {accelerator: gpu, devices: 2, strategy: ddp}\n";
  for (const char* key : {"data", "datamodule", "data_module"}) {
    EXPECT_EQ(read(trainer + key + ": {batch_size: 24}\n").workload["batch"], 24) << key;
  }
}

TEST_F(Trainers, RecipesAndReplicasAreRefused) {
  EXPECT_TRUE(contains(refusal("recipe: {_target_: megatron.bridge.recipes.x}\n"
                               "model: {tensor_model_parallel_size: 4}\n"
                               "train: {global_batch_size: 4}\n"),
                       "recipe: changes of a recipe"));
  const std::string titan =
      "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[fault_tolerance]\nenable = true\n";
  EXPECT_TRUE(
      contains(test::input_error([&] { static_cast<void>(read_settings(write("a.toml", titan))); }),
               "fault_tolerance.enable: groups of torchft"));
}

const std::string kNemo = R"(
name: megatron_llama
trainer: {devices: 8, num_nodes: 4, precision: bf16-mixed, accelerator: gpu}
model:
  mcore_gpt: true
  vocab_size: 32000
  micro_batch_size: 1
  global_batch_size: 128
  tensor_model_parallel_size: 2
  encoder_seq_length: 4096
  max_position_embeddings: ${.encoder_seq_length}
  num_layers: 32
  hidden_size: 4096
  ffn_hidden_size: 11008
  num_attention_heads: 32
  num_query_groups: null
  normalization: rmsnorm
  bias: false
  activation: fast-swiglu
  position_embedding_type: rope
  share_embeddings_and_output_weights: false
  megatron_amp_O2: true
  sequence_parallel: true
  activations_checkpoint_granularity: selective
  data: {seq_length: "${model.encoder_seq_length}"}
)";

// The same job by Megatron's flags.
TEST_F(Trainers, NemoIsMegatron) {
  const std::string optim =
      "  optim: {name: distributed_fused_adam, bucket_cap_mb: 400, overlap_param_sync: true, "
      "grad_sync_dtype: bf16}\n";
  const Settings job = read(kNemo + optim);
  const Settings flags =
      read_settings(
          "--num-layers 32 --hidden-size 4096 --ffn-hidden-size 11008 --num-attention-heads 32 "
          "--seq-length 4096 --max-position-embeddings 4096 --swiglu --disable-bias-linear "
          "--normalization RMSNorm --position-embedding-type rope "
          "--untie-embeddings-and-output-weights --micro-batch-size 1 --global-batch-size 128 "
          "--bf16 --tensor-model-parallel-size 2 --sequence-parallel --recompute-granularity "
          "selective --vocab-size 32000")
          .value();
  EXPECT_EQ(job.framework, "NeMo");
  EXPECT_EQ(in_any_order(job.workload), in_any_order(flags.workload));
  EXPECT_EQ(job.global_batch, 128);
  EXPECT_EQ(job.ranks, 32);
  EXPECT_FALSE(job.autocast);
  // 400 MB of fp32.
  EXPECT_EQ(in_any_order(job.strategy["config"]),
            in_text(R"({"use-distributed-optimizer": true, "overlap-grad-reduce": true,
                       "overlap-param-gather": true, "ddp-bucket-size": 104857600,
                       "grad-reduce-in-bf16": true})"));
  EXPECT_TRUE(test::any_contains(job.assumed, "apex's distributed Adam"));
  EXPECT_EQ(begun(kNemo + optim).workload.micro_batches, 8);
}

TEST_F(Trainers, NemosMainGradients) {
  const auto config = [&](const std::string& more) {
    return in_any_order(read(kNemo + more).strategy["config"]);
  };
  // Behind sequence parallelism they are summed at the end.
  EXPECT_EQ(config(""), in_text(R"({"accumulate-allreduce-grads-in-fp32": true})"));
  std::string plain = kNemo;
  plain.replace(plain.find("sequence_parallel: true"), 23, "sequence_parallel: false");
  EXPECT_EQ(in_any_order(read(plain).strategy["config"]),
            in_text(R"({"accumulate-allreduce-grads-in-fp32": true, "overlap-grad-reduce": true,
                       "ddp-bucket-size": 32768000})"));
  plain.replace(plain.find("megatron_amp_O2: true"), 21, "megatron_amp_O2: false");
  EXPECT_TRUE(read(plain).autocast);
  EXPECT_TRUE(contains(refusal(kNemo + "  fsdp: true\n"), "FSDP inside NeMo"));
  EXPECT_TRUE(contains(refusal(kNemo + "  peft: {peft_scheme: lora}\n"), "adapters alone"));
  EXPECT_EQ(read(kNemo, "--micro-batch-size 2").workload["batch"], 2);
  EXPECT_TRUE(contains(refusal("exp_manager: {name: x}\nmodel: {num_layers: 2}\n"), "NeMo"));
}

const std::string kNeox = R"({
  "pipe-parallel-size": 4, "model-parallel-size": 2,
  "num-layers": 44, "hidden-size": 6144, "num-attention-heads": 64,
  "seq-length": 2048, "max-position-embeddings": 2048, "vocab-size": 50432,
  "pos-emb": "rotary", "no-weight-tying": true, "gpt_j_residual": true,
  "zero_optimization": {"stage": 1, "allgather_bucket_size": 1260000000, "overlap_comm": True,
    "reduce_bucket_size": 1260000000},
  "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 32,
  "checkpoint-activations": true,
  "fp16": {"fp16": true, "enabled": true, "loss_scale": 0},
})";

// A method of full recomputation next to "selective", as NeMo's own files have it, changes nothing.
TEST_F(Trainers, NemosMethodsOfRecomputation) {
  const Settings job = read(kNemo + "  activations_checkpoint_method: block\n");
  EXPECT_EQ(job.workload["activation_checkpointing"], "selective");
}

// GPT-NeoX-20B as it was trained: 20.55 billion parameters.
TEST_F(Trainers, NeoxIsDeepSpeedAroundMegatron) {
  const Settings job = read(kNeox);
  EXPECT_EQ(job.framework, "gpt-neox");
  EXPECT_EQ(in_any_order(job.workload["parallel"]), in_text(R"({"tensor": 2, "pipeline": 4})"));
  EXPECT_EQ(job.workload["batch"], 4);
  EXPECT_EQ(job.micro_batches, 32);
  EXPECT_EQ(job.workload["activation_checkpointing"], "full");
  EXPECT_EQ(job.workload["operators"]["dtype"], "fp16");
  EXPECT_EQ(job.strategy["dialect"], "deepspeed");
  EXPECT_EQ(job.strategy["config"]["zero_optimization"]["reduce_bucket_size"], 1260000000);
  std::int64_t parameters = 0;
  for (const Tensor& tensor : begun(kNeox).workload.tensors) parameters += tensor.elements;
  // A rank holds half of each layer.
  EXPECT_NEAR(2 * static_cast<double>(parameters), 20.55e9, 0.01e9);
  const Settings bf16 = read(
      "{\"num-layers\": 2, \"hidden-size\": 64, \"num-attention-heads\": 4, "
      "\"seq-length\": 8, \"vocab-size\": 128, \"pipe-parallel-size\": 0, "
      "\"model-parallel-size\": 1, \"fp16\": {\"enabled\": true, \"type\": "
      "\"bfloat16\"}}");
  EXPECT_EQ(bf16.workload["operators"]["dtype"], "bf16");
  EXPECT_FALSE(bf16.workload.contains("parallel"));
}

// A gate without a size has two thirds of four times the width; sums are in fp32 if they are told
// so.
TEST_F(Trainers, NeoxGatesAndSums) {
  std::string text = kNeox;
  text.replace(text.find("\"gpt_j_residual\": true"), 22,
               "\"mlp_type\": \"gated\", \"fp32_allreduce\": true, \"use_mup\": true");
  const Settings job = read(text);
  EXPECT_EQ(job.workload["operators"]["shape"]["inner"], 16384);
  EXPECT_EQ(job.strategy["config"]["communication_data_type"], "fp32");
  EXPECT_TRUE(test::any_contains(job.assumed, "use_mup")) << job.assumed.size();
}

// Vocabularies by their tokenizers, as Pythia's published sizes have them.
TEST_F(Trainers, NeoxTokenizers) {
  std::string text = kNeox;
  text.replace(text.find("\"vocab-size\": 50432,"), 20, "");
  const auto words = [](const Settings& job) {
    return job.workload["operators"]["shape"]["words"];
  };
  EXPECT_EQ(words(read(text)), 50432);  // GPT-2's 50257, for two ranks
  for (const auto& [ranks, size] : {std::pair{1, 50304}, {2, 50432}, {4, 50688}}) {
    std::string own = text;
    own.replace(own.find("\"model-parallel-size\": 2"), 24,
                "\"tokenizer_type\": \"HFTokenizer\", \"vocab-file\": "
                "\"x/20B_tokenizer.json\", \"model-parallel-size\": " +
                    std::to_string(ranks));
    EXPECT_EQ(words(read(own)), size) << ranks;
  }
}

// A second file beside it, as gpt-neox' launcher takes them.
TEST_F(Trainers, NeoxInTwoFiles) {
  const std::string second = write("setup.yml", "{\"train_micro_batch_size_per_gpu\": 2}");
  EXPECT_EQ(read(kNeox, second + " --micro-batch-size 3").workload["batch"], 3);
  EXPECT_EQ(read(kNeox, second).workload["batch"], 2);
}

TEST_F(Trainers, LightningByItsStrategies) {
  const auto with = [](const std::string& strategy) {
    return "seed_everything: 42\ntrainer:\n  devices: 8\n  num_nodes: 4\n  precision: bf16-mixed\n"
           "  accumulate_grad_batches: 4\n  strategy: " +
           strategy + "\ndata: {class_path: my.Data, init_args: {batch_size: 16}}\n";
  };
  Settings job = read(
      with("{class_path: lightning.pytorch.strategies.DDPStrategy, init_args: {bucket_cap_mb: 50, "
           "static_graph: true, ddp_comm_hook: "
           "torch.distributed.algorithms.ddp_comm_hooks.default_hooks.fp16_compress_hook}}"));
  EXPECT_EQ(job.framework, "Lightning");
  EXPECT_EQ(in_any_order(job.strategy),
            in_text(R"({"dialect": "pytorch", "config": {"no_sync": true, "bucket_cap_mb": 50,
                       "static_graph": true, "comm_hook": "fp16_compress_hook"}})"));
  EXPECT_EQ(read(with("{_target_: lightning.pytorch.strategies.DDPStrategy, bucket_cap_mb: 50, "
                      "static_graph: true, ddp_comm_hook: "
                      "torch.distributed.algorithms.ddp_comm_hooks.default_hooks."
                      "fp16_compress_hook}"))
                .strategy,
            job.strategy);
  EXPECT_TRUE(test::any_contains(
      read(with("ddp") + "model: {class_path: my.Model, init_args: {lora_r: 16}}\n").assumed,
      "though lora_r may be of adapters"));
  EXPECT_EQ(job.workload["batch"], 16);
  EXPECT_EQ(job.micro_batches, 4);
  EXPECT_EQ(job.ranks, 32);
  EXPECT_TRUE(job.autocast);
  EXPECT_EQ(in_any_order(read(with("ddp_find_unused_parameters_true")).strategy["config"]),
            in_text(R"({"no_sync": true, "find_unused_parameters": true})"));
  EXPECT_EQ(read(with("null")).strategy["dialect"], "pytorch");

  job =
      read(with("{class_path: FSDPStrategy, init_args: {sharding_strategy: SHARD_GRAD_OP, "
                "auto_wrap_policy: [torch.nn.TransformerEncoderLayer], "
                "activation_checkpointing_policy: [torch.nn.TransformerEncoderLayer]}}"));
  EXPECT_EQ(in_any_order(job.strategy["config"]),
            in_text(R"({"version": 1, "units": "layers", "use_orig_params": true,
                       "sharding_strategy": "SHARD_GRAD_OP", "mixed_precision":
                       {"param_dtype": "bfloat16", "reduce_dtype": "bfloat16"}})"));
  EXPECT_EQ(job.workload["activation_checkpointing"], "full");

  job = read(with("deepspeed_stage_3"));
  EXPECT_EQ(job.strategy["dialect"], "deepspeed");
  EXPECT_EQ(job.strategy["config"]["zero_optimization"]["stage"], 3);
  EXPECT_EQ(job.strategy["config"]["zero_optimization"]["reduce_bucket_size"], 200000000);
  EXPECT_EQ(job.workload["operators"]["dtype"], "bf16");
  for (const char* strategy : {"ddp", "fsdp", "deepspeed_stage_2", "deepspeed"}) {
    EXPECT_EQ(begun(with(strategy), "gpt2_small").workload.micro_batches, 4) << strategy;
  }
  using Offload = Strategy::Offload;
  for (const auto& [strategy, offload] : {std::pair{"deepspeed_stage_3_offload", Offload::kAll},
                                          {"deepspeed_stage_2_offload", Offload::kOptimizer},
                                          {"fsdp_cpu_offload", Offload::kAll}}) {
    EXPECT_EQ(begun(with(strategy), "gpt2_small").strategies.front().offload, offload) << strategy;
  }
  for (const auto& [strategy, words] :
       {std::pair{"xla", "found 'xla', which is not modelled"},
        {"{class_path: DDPStrategy, init_args: {model_averaging_period: 4}}", "is not read"}}) {
    std::string said = refusal(with(strategy));
    if (said.empty()) {
      said = test::input_error([&] { static_cast<void>(begun(with(strategy), "gpt2_small")); });
    }
    EXPECT_TRUE(contains(said, words)) << strategy << ": " << said;
  }
}

// Projects with Hydra keep the trainer's arguments in a file of their own.
TEST_F(Trainers, LightningsTrainerAlone) {
  const Settings job = read(
      "accelerator: gpu\nstrategy: fsdp\ndevices: 4\nnum_nodes: 2\nprecision: bf16-mixed\n"
      "accumulate_grad_batches: 4\n");
  EXPECT_EQ(job.framework, "Lightning");
  EXPECT_EQ(job.strategy["dialect"], "fsdp");
  EXPECT_EQ(job.micro_batches, 4);
  EXPECT_EQ(job.ranks, 8);
  EXPECT_EQ(job.nodes, 2);
}

const std::string kMpt = R"(
max_seq_len: 2048
run_name:
model: {name: mpt_causal_lm, d_model: 4096, n_heads: 32, n_layers: 32, expansion_ratio: 4,
        max_seq_len: "${max_seq_len}", vocab_size: 50368, no_bias: true,
        attn_config: {alibi: true, attn_impl: flash}}
train_loader: {name: text}
max_duration: 63900ba
global_train_batch_size: 1024
device_train_microbatch_size: 8
precision: amp_bf16
)";

// MPT-7B as its maker trained it: 6.65 billion parameters.
TEST_F(Trainers, ComposersFsdp) {
  const std::string sharded = kMpt +
                              "fsdp_config: {sharding_strategy: FULL_SHARD, mixed_precision: PURE, "
                              "activation_checkpointing: true, limit_all_gathers: true}\n";
  const Settings job = read(sharded);
  EXPECT_EQ(job.framework, "Composer");
  EXPECT_EQ(in_any_order(job.strategy),
            in_text(R"({"dialect": "fsdp", "config": {"version": 1, "units": "layers",
              "use_orig_params": true, "sharding_strategy": "FULL_SHARD", "mixed_precision":
              {"param_dtype": "bfloat16", "reduce_dtype": "bfloat16"}}})"));
  EXPECT_TRUE(test::any_contains(job.assumed, "backward_prefetch BACKWARD_POST"));
  EXPECT_EQ(job.workload["activation_checkpointing"], "full");
  const Scenario scenario = begun(sharded);
  EXPECT_EQ(scenario.workload.micro_batches, 4);  // 1024 / (8 x 32)
  std::int64_t parameters = 0;
  for (const Tensor& tensor : scenario.workload.tensors) parameters += tensor.elements;
  EXPECT_NEAR(static_cast<double>(parameters), 6.649e9, 0.005e9);
  // FSDP has no no_sync there, DistributedDataParallel has.
  EXPECT_TRUE(scenario.strategies.front().each_micro_batch);
  EXPECT_EQ(in_any_order(read(kMpt).strategy),
            in_text(R"({"dialect": "pytorch", "config": {"no_sync": true}})"));
  EXPECT_EQ(read(kMpt + "fsdp_config: {data_parallel_replicate_degree: 2, "
                        "data_parallel_shard_degree: 16}\n")
                .strategy["config"]["sharding_strategy"],
            "HYBRID_SHARD");
  EXPECT_EQ(read(kMpt + "fsdp_config: {mixed_precision: DEFAULT}\n")
                .strategy["config"]["mixed_precision"]["reduce_dtype"],
            "float32");
  EXPECT_EQ(begun(kMpt + "fsdp_config: {cpu_offload: true}\n").strategies.front().offload,
            Strategy::Offload::kAll);
  EXPECT_TRUE(test::any_contains(
      read(kMpt + "fsdp_config: {activation_cpu_offload: true}\n").assumed, "on the host"));
  std::string adapted = kMpt;
  adapted.replace(adapted.find("no_bias: true"), 13, "peft_config: {peft_type: LORA, r: 8}");
  EXPECT_EQ(read(adapted).adapters["rank"], 8);
  EXPECT_EQ(read(adapted + "parallelism_config: {fsdp: {sharding_strategy: FULL_SHARD}}\n")
                .adapters["wrapped"],
            true);
  EXPECT_TRUE(contains(refusal("global_train_batch_size: 512\ndevice_train_microbatch_size: 2\n"
                               "fsdp: {wrapping_strategy: by_block}\n"),
                       "OLMo"));
  // A job of the platform has them under `parameters`.
  std::string inside = "name: x\nparameters:\n";
  for (const char letter : sharded)
    inside += letter == '\n' ? std::string("\n  ") : std::string(1, letter);
  EXPECT_EQ(in_any_order(read(inside).workload), in_any_order(job.workload));
}

// A model by its own sizes is none by the name next to them, as of a tokenizer.
TEST_F(Trainers, ComposersOwnModel) {
  const Settings job = read(
      "max_duration: 1ba\nglobal_train_batch_size: 64\ndevice_train_microbatch_size: 8\n"
      "max_seq_len: 512\nmodel: {name: flex_bert, pretrained_model_name: bert-base-uncased,\n"
      "  model_config: {num_hidden_layers: 22}}\n");
  EXPECT_TRUE(contains(job.no_model, "model.model_config"));
  EXPECT_TRUE(job.model.empty());
  EXPECT_FALSE(job.workload["operators"].contains("architecture"));
}

TEST_F(Trainers, ReferencesAreFollowed) {
  EXPECT_EQ(frameworks::with_references(Json::parse(
                R"({"a": 1, "b": {"c": "${a}", "d": "${.c}", "e": "${b.d}", "f": {"g": "${..c}"}},
                    "x": "${none}", "y": "${y}", "z": "${b}", "m": "${mul:1,2}"})")),
            Json::parse(R"({"a": 1, "b": {"c": 1, "d": 1, "e": 1, "f": {"g": 1}},
                    "x": "${none}", "y": "${y}", "z": "${b}", "m": "${mul:1,2}"})"));
}

}  // namespace
}  // namespace syncline::job
