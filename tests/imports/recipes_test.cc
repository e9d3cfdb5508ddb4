// Recipes, each one training script with settings of its own: torchtune, LitGPT, verl.
#include <gtest/gtest.h>

#include "imports/frameworks/settings.h"
#include "imports/init.h"
#include "tests/support/jobs.h"

namespace syncline::job {
namespace {

using test::contains;

class Recipes : public testing::Test {
 protected:
  Settings read(const std::string& text) {
    test::write_text(folder_.path("a.yaml"), text);
    return read_settings(folder_.path("a.yaml")).value();
  }
  std::string refusal(const std::string& text) {
    return test::input_error([&] { static_cast<void>(read(text)); });
  }

 private:
  const test::Scratch folder_;
};

const std::string kTune = R"(
tokenizer: {_component_: torchtune.models.llama3.llama3_tokenizer, max_seq_len: 4096}
batch_size: 2
gradient_accumulation_steps: 8
dtype: bf16
enable_activation_checkpointing: True
loss: {_component_: torchtune.modules.loss.CEWithChunkedOutputLoss}
optimizer: {_component_: torch.optim.AdamW, lr: 2e-5}
)";

// FSDP 2 in the parameters' own format; each pass sums gradients.
TEST_F(Recipes, TorchtuneShardsLayers) {
  const Settings job =
      read(kTune + "model: {_component_: torchtune.models.llama3_1.llama3_1_8b}\n");
  EXPECT_EQ(job.framework, "torchtune");
  EXPECT_EQ(job.workload["operators"]["architecture"], "llama3_8b");
  EXPECT_EQ(job.workload["operators"]["sequence"], 4096);
  EXPECT_EQ(job.workload["batch"], 2);
  EXPECT_EQ(job.micro_batches, 8);
  EXPECT_EQ(job.workload["activation_checkpointing"], "full");
  EXPECT_FALSE(job.autocast);
  EXPECT_EQ(job.strategy["config"],
            Json({{"version", 2}, {"units", "layers"}, {"reshard_after_forward", true}}));
  EXPECT_TRUE(job.assumed.empty());
}

TEST_F(Recipes, TorchtunesAdapters) {
  const std::string arguments =
      ", lora_attn_modules: [q_proj, output_proj], apply_lora_to_mlp: True, lora_rank: 16}\n";
  const Settings job =
      read(kTune + "model: {_component_: torchtune.models.llama3_3.qlora_llama3_3_70b" + arguments);
  EXPECT_EQ(job.workload["operators"]["architecture"], "llama3_70b");
  EXPECT_EQ(job.adapters,
            Json({{"rank", 16},
                  {"targets", {"q_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}},
                  {"trained", Json::array()},
                  {"bits", 4}}));
}

TEST_F(Recipes, TorchtunesOtherRecipesAreRefused) {
  const std::string model = "model: {_component_: torchtune.models.llama3.llama3_8b}\n";
  EXPECT_TRUE(contains(refusal(model + "loss: {_component_: torchtune.rlhf.loss.DPOLoss}\n"),
                       "loss._component_: trains with other models"));
  EXPECT_TRUE(contains(refusal(model + "teacher_model: {_component_: torchtune.models.x}\n"),
                       "teacher_model: trains with other models"));
  EXPECT_TRUE(
      test::any_contains(read(model + "optimizer_in_bwd: True\n").assumed, "optimizer_in_bwd"));
  EXPECT_TRUE(contains(test::input_error([] {
                         static_cast<void>(read_settings(
                             "tune run --nproc_per_node 8 lora_finetune_distributed --config "
                             "llama3_1/8B_lora"));
                       }),
                       "tune cp llama3_1/8B_lora my.yaml"));
}

// Words after the recipe change keys of its configuration.
TEST_F(Recipes, TorchtunesLaunch) {
  const test::Scratch folder;
  Json launch = Json::parse(R"({"words": ["tune", "run", "--nproc_per_node", "4",
      "full_finetune_distributed", "--config", "t.yaml", "batch_size=1"]})");
  launch["files"]["t.yaml"] =
      kTune + "model: {_component_: torchtune.models.llama3_1.llama3_1_8b}\n";
  const Json captured = {{"launches", Json::array({launch})}};
  test::write_text(folder.path("l.json"), captured.dump());
  const auto job = read_settings(folder.path("l.json"));
  ASSERT_TRUE(job.has_value());
  EXPECT_EQ(job->workload["batch"], 1);
  EXPECT_EQ(job->micro_batches, 8);
  EXPECT_EQ(job->ranks, 4);
}

const std::string kLit =
    "checkpoint_dir: checkpoints/meta-llama/Meta-Llama-3.1-8B-Instruct\n"
    "train: {global_batch_size: 128, micro_batch_size: 4, max_seq_length: 512}\n";

TEST_F(Recipes, LitGptIsFabricsFsdp) {
  const Settings job = read(kLit + "devices: 4\nnum_nodes: 2\nprecision: bf16-true\n");
  EXPECT_EQ(job.framework, "LitGPT");
  EXPECT_EQ(job.workload["operators"]["architecture"], "llama3_8b");
  EXPECT_EQ(job.workload["batch"], 4);
  EXPECT_EQ(job.global_batch, 128);
  EXPECT_EQ(job.ranks, 8);
  EXPECT_EQ(job.nodes, 2);
  EXPECT_EQ(job.workload["activation_checkpointing"], "full");
  EXPECT_EQ(job.strategy["config"]["sharding_strategy"], "FULL_SHARD");
  EXPECT_EQ(job.strategy["config"]["no_sync"], true);
  EXPECT_FALSE(job.autocast);
  EXPECT_TRUE(job.assumed.empty());
  EXPECT_TRUE(read(kLit + "optimizer: AdamW\n").assumed.empty());
  EXPECT_TRUE(test::any_contains(
      read(kLit + "optimizer:\n  class_path: torch.optim.SGD\n  init_args: {lr: 0.1}\n").assumed,
      "in place of optimizer torch.optim.SGD"));
  // One device shards nothing; the usual precision is mixed.
  const Settings one = read(kLit + "devices: 1\n");
  EXPECT_EQ(one.strategy["dialect"], "pytorch");
  EXPECT_TRUE(one.autocast);
  EXPECT_FALSE(one.workload.contains("activation_checkpointing"));
  EXPECT_TRUE(test::any_contains(one.assumed, "LitGPT shards for devices above 1"));
}

TEST_F(Recipes, LitGptsAdaptersAndPretraining) {
  const Settings lora = read(kLit + "lora_r: 32\nlora_key: true\nlora_value: false\n");
  EXPECT_EQ(lora.adapters["rank"], 32);
  EXPECT_EQ(lora.adapters["targets"], Json({"q_proj", "k_proj"}));
  const Settings pretrained = read(
      "model_name: pythia-160m\nout_dir: out\ndevices: auto\n"
      "train: {global_batch_size: 512, micro_batch_size: 4}\n");
  EXPECT_EQ(pretrained.model, "pythia_160m");
  EXPECT_EQ(pretrained.strategy["config"]["sharding_strategy"], "HYBRID_SHARD");
  EXPECT_FALSE(pretrained.workload.contains("activation_checkpointing"));
}

TEST_F(Recipes, VerlsTuning) {
  const std::string launch =
      "torchrun --nnodes=2 --nproc_per_node=8 -m verl.trainer.fsdp_sft_trainer "
      "data.train_batch_size=64 data.micro_batch_size_per_gpu=2 data.max_length=8192 "
      "model.partial_pretrain=Qwen/Qwen3-4B ulysses_sequence_parallel_size=2 "
      "model.enable_gradient_checkpointing=True ";
  const Settings job = read_settings(launch).value();
  EXPECT_EQ(job.model, "qwen3_4b");
  EXPECT_EQ(job.ranks, 16);
  EXPECT_EQ(job.workload["batch"], 2);
  EXPECT_EQ(job.global_batch, 64);
  EXPECT_EQ(job.workload["operators"]["sequence"], 8192);
  EXPECT_EQ(job.workload["parallel"]["context"], 2);
  EXPECT_EQ(job.strategy["config"]["mixed_precision"]["reduce_dtype"], "float32");
  EXPECT_TRUE(job.autocast);
  const Settings newer =
      read_settings(launch + "model.strategy=fsdp2 model.fsdp_config.model_dtype=bf16").value();
  EXPECT_EQ(newer.strategy["config"]["version"], 2);
  EXPECT_FALSE(newer.autocast);
  const Settings lora = read_settings(launch + "model.lora_rank=8").value();
  EXPECT_EQ(lora.adapters["rank"], 8);
  EXPECT_TRUE(contains(test::input_error([&] {
                         static_cast<void>(read_settings(launch + "data.micro_batch_size=4"));
                       }),
                       "data.micro_batch_size_per_gpu"));
}

// Switches are words, and the model has its maker's name.
TEST_F(Recipes, SwiftsMegatron) {
  const std::string launch =
      "NPROC_PER_NODE=8 megatron sft --model Qwen/Qwen3-30B-A3B --tensor_model_parallel_size 2 "
      "--expert_model_parallel_size 8 --sequence_parallel true --micro_batch_size 1 "
      "--global_batch_size 16 --max_length 16384 --recompute_granularity full --packing true ";
  const Settings job = read_settings(launch).value();
  EXPECT_EQ(job.framework, "ms-swift's Megatron");
  EXPECT_EQ(job.workload["operators"]["architecture"], "qwen3_30b_a3b");
  EXPECT_EQ(job.workload["operators"]["sequence"], 16384);
  EXPECT_EQ(job.workload["operators"]["dtype"], "bf16");
  EXPECT_EQ(job.workload["activation_checkpointing"], "full");
  const Json& parallel = job.workload["parallel"];
  EXPECT_EQ(parallel["tensor"], 2);
  EXPECT_EQ(parallel["expert"], 8);
  EXPECT_EQ(parallel["sequence"], true);
  EXPECT_EQ(job.global_batch, 16);
  EXPECT_EQ(job.strategy["config"]["use-distributed-optimizer"], true);
  EXPECT_EQ(read_settings(launch + "--train_type lora --lora_rank 4 --target_modules all-linear")
                ->adapters["rank"],
            4);
  EXPECT_TRUE(contains(
      test::input_error([&] { static_cast<void>(read_settings(launch + "--rlhf_type dpo")); }),
      "trains by preferences"));
}

}  // namespace
}  // namespace syncline::job
