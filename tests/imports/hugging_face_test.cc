// Settings of Hugging Face's libraries and of the trainers around them, each as a job.
#include <gtest/gtest.h>

#include "formats/input/document.h"
#include "imports/frameworks/settings.h"
#include "imports/init.h"
#include "studies/rows/memory.h"
#include "tests/support/jobs.h"

namespace syncline::job {
namespace {

using test::contains;

// Without the order of keys.
nlohmann::json sorted(const Json& json) { return nlohmann::json::parse(json.dump()); }
nlohmann::json parsed(const char* text) { return nlohmann::json::parse(text); }

class HuggingFace : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path(name); }
  std::string write(const std::string& name, const std::string& text) {
    test::write_text(path(name), text);
    return path(name);
  }
  Settings read(const std::string& name, const std::string& text, const std::string& more = "") {
    return read_settings(write(name, text), more).value();
  }
  std::string refusal(const std::string& name, const std::string& text) {
    const std::string said =
        test::input_error([&] { static_cast<void>(read_settings(write(name, text))); });
    return said.starts_with(folder_.folder()) ? said.substr(folder_.folder().size() + 1) : said;
  }

 private:
  const test::Scratch folder_;
};

// open-instruct's files of DeepSpeed's settings end in .conf.
TEST_F(HuggingFace, JsonInAFileOfAnotherEnding) {
  const Json launch = {
      {"words",
       {"accelerate", "launch", "--use_deepspeed", "--deepspeed_config_file", "ds/stage3.conf",
        "finetune.py", "--per_device_train_batch_size", "1", "--gradient_accumulation_steps", "8"}},
      {"folder", "/"},
      {"environment", Json::object()},
      {"files", {{"ds/stage3.conf", R"({"zero_optimization": {"stage": 3}})"}}}};
  const Json captured = {{"launches", Json::array({launch})}};
  const Settings job = read_settings(write("l.json", captured.dump())).value();
  EXPECT_EQ(job.strategy["config"]["zero_optimization"]["stage"], 3);
  EXPECT_EQ(job.micro_batches, 8);
}

// axolotl has names of its own for accelerate's degrees; other scripts' cuts are named.
TEST_F(HuggingFace, DegreesOfAxolotl) {
  const std::string text =
      "base_model: NousResearch/Meta-Llama-3-8B\nmicro_batch_size: 1\nbf16: true\n"
      "fsdp_version: 2\nfsdp_config: {reshard_after_forward: true}\n";
  const Settings cut = read(
      "a.yaml", text + "tensor_parallel_size: 2\ncontext_parallel_size: 2\ndp_replicate_size: 2\n");
  EXPECT_EQ(sorted(cut.workload["parallel"]), parsed(R"({"tensor": 2, "context": 2})"));
  EXPECT_EQ(sorted(cut.strategy["config"]["mesh"]), parsed("[2, -1]"));
  EXPECT_FALSE(test::any_contains(cut.assumed, "not cut"));
  const Settings plugin =
      read("z.yaml",
           "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\n"
           "deepspeed_config: {zero_stage: 3, deepspeed_multinode_launcher: standard, "
           "zero_hpz_partition_size: 8}\n");
  EXPECT_TRUE(test::any_contains(plugin.assumed, "nothing of zero_hpz_partition_size"));
  EXPECT_FALSE(test::any_contains(plugin.assumed, "multinode_launcher"));
  const Settings own = read("l.yaml",
                            "model_name_or_path: Qwen/Qwen3-8B\nper_device_train_batch_size: 1\n"
                            "bf16: true\nsp_size: 4\n");
  EXPECT_TRUE(test::any_contains(own.assumed, "not cut, though the script has sp_size 4"));
}

TEST_F(HuggingFace, AcceleratesYamlOfEachKind) {
  const std::string machine = "compute_environment: LOCAL_MACHINE\nnum_processes: 8\n";
  Settings job = read("ddp.yaml", machine + "distributed_type: MULTI_GPU\nmixed_precision: bf16\n");
  EXPECT_EQ(job.framework, "accelerate");
  EXPECT_EQ(sorted(job.strategy), parsed(R"({"dialect": "pytorch", "config": {"no_sync": true}})"));
  EXPECT_TRUE(job.autocast);
  EXPECT_EQ(job.workload["operators"]["dtype"], "bf16");

  job = read("fsdp.yaml", machine + R"(distributed_type: FSDP
mixed_precision: bf16
fsdp_config:
  fsdp_sharding_strategy: 4
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_use_orig_params: 'false'
  fsdp_activation_checkpointing: true
)");
  EXPECT_EQ(sorted(job.strategy["config"]), parsed(R"({
    "version": 1, "no_sync": true, "units": "layers", "sharding_strategy": "HYBRID_SHARD",
    "use_orig_params": false,
    "mixed_precision": {"param_dtype": "bfloat16", "reduce_dtype": "bfloat16"}})"));
  EXPECT_EQ(job.workload["activation_checkpointing"], "full");

  job = read("fsdp2.yaml", machine + R"(distributed_type: FSDP
mixed_precision: 'no'
parallelism_config:
  parallelism_config_dp_replicate_size: 2
fsdp_config:
  fsdp_version: 2
  fsdp_reshard_after_forward: false
)");
  EXPECT_EQ(sorted(job.strategy["config"]), parsed(R"({
    "version": 2, "no_sync": true, "units": [], "reshard_after_forward": false,
    "mesh": [2, -1]})"));
  EXPECT_FALSE(job.autocast);

  job = read("zero.yaml", machine + R"(distributed_type: DEEPSPEED
mixed_precision: bf16
deepspeed_config:
  zero_stage: 3
  gradient_accumulation_steps: 4
  offload_optimizer_device: none
)");
  EXPECT_EQ(job.strategy["dialect"], "deepspeed");
  EXPECT_EQ(sorted(job.strategy["config"]["zero_optimization"]), parsed(R"({"stage": 3})"));
  EXPECT_EQ(job.micro_batches, 4);
  EXPECT_EQ(job.workload["operators"]["dtype"], "bf16");

  job = read("megatron.yaml", machine + R"(distributed_type: MEGATRON_LM
mixed_precision: bf16
megatron_lm_config:
  megatron_lm_tp_degree: 2
  megatron_lm_pp_degree: 2
  megatron_lm_num_micro_batches: 6
  megatron_lm_sequence_parallelism: true
  megatron_lm_use_distributed_optimizer: true
)");
  EXPECT_EQ(job.strategy["dialect"], "megatron");
  EXPECT_EQ(job.workload["parallel"]["tensor"], 2);
  EXPECT_EQ(job.workload["parallel"]["pipeline"], 2);
  EXPECT_EQ(job.micro_batches, 6);
}

TEST_F(HuggingFace, TrainingArgumentsAsFilesAndFlags) {
  const Settings job = read("args.yaml", R"(model_name_or_path: meta-llama/Meta-Llama-3-8B-Instruct
per_device_train_batch_size: 2
gradient_accumulation_steps: '8'
bf16: 'True'
gradient_checkpointing: true
ddp_bucket_cap_mb: 50
learning_rate: 1.0e-5
)");
  EXPECT_EQ(job.workload["operators"]["architecture"], "llama3_8b");
  EXPECT_EQ(job.workload["batch"], 2);
  EXPECT_EQ(job.micro_batches, 8);
  EXPECT_TRUE(job.autocast);
  EXPECT_EQ(job.workload["activation_checkpointing"], "full");
  EXPECT_EQ(sorted(job.strategy), parsed(R"({"dialect": "hf_trainer", "config": {
    "ddp_bucket_cap_mb": 50, "gradient_checkpointing": true}})"));

  const Settings flags = read_settings(
                             "torchrun train.py --model_name_or_path Qwen/Qwen3-0.6B "
                             "--per_device_train_batch_size 4 --bf16 True "
                             "--fsdp 'full_shard auto_wrap'")
                             .value();
  EXPECT_EQ(flags.workload["batch"], 4);
  EXPECT_EQ(flags.strategy["config"]["units"], "layers");
  EXPECT_EQ(flags.strategy["config"]["sharding_strategy"], "FULL_SHARD");
  EXPECT_TRUE(test::any_contains(flags.assumed, "in place of fsdp_backward_prefetch NO_PREFETCH"));
}

// The Trainer fills in a file that lies next to the settings.
TEST_F(HuggingFace, ReadsDeepSpeedsFileNextToTheArguments) {
  write("ds.json", R"({"bf16": {"enabled": "auto"}, "fp16": {"enabled": "auto"},
    "train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto",
    "gradient_accumulation_steps": "auto",
    "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "none"}}})");
  const std::string text = R"(model_name_or_path: meta-llama/Llama-2-7b-hf
stage: sft
finetuning_type: full
deepspeed: examples/deepspeed/ds.json
cutoff_len: 4096
per_device_train_batch_size: 1
gradient_accumulation_steps: 2
bf16: true
)";
  const Settings job = read("full_sft.yaml", text);
  EXPECT_EQ(job.workload["operators"]["dtype"], "bf16");
  EXPECT_EQ(job.workload["operators"]["sequence"], 4096);
  EXPECT_EQ(job.workload["operators"]["architecture"], "llama2_7b");
  EXPECT_EQ(job.workload["batch"], 1);
  EXPECT_EQ(job.micro_batches, 2);
  EXPECT_FALSE(job.autocast);
  EXPECT_EQ(sorted(job.strategy["config"]["zero_optimization"]), parsed(R"({"stage": 2})"));
  EXPECT_TRUE(contains(refusal("other.yaml",
                               "deepspeed: mine.json\nbf16: true\nstage: sft\n"
                               "model_name_or_path: a/b\n"),
                       "names 'mine.json', which is neither here nor next to"));
}

TEST_F(HuggingFace, LaunchesOfAccelerate) {
  write("fsdp.yaml",
        "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nmixed_precision: bf16\n"
        "fsdp_config:\n  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n");
  write("sft.yaml", "per_device_train_batch_size: 3\nbf16: true\n");
  const std::string flags =
      "accelerate launch --use_fsdp --fsdp_sharding_strategy HYBRID_SHARD "
      "--mixed_precision bf16 train.py --per_device_train_batch_size 2";
  const Settings line = read_settings(flags).value();
  EXPECT_EQ(line.workload["batch"], 2);
  EXPECT_EQ(line.strategy["config"]["sharding_strategy"], "HYBRID_SHARD");
  EXPECT_EQ(line.workload["operators"]["dtype"], "bf16");
  const Settings script = read("run.sh",
                               "#!/bin/bash\naccelerate launch --config_file configs/fsdp.yaml "
                               "sft.py --config " +
                                   path("sft.yaml") + " --gradient_accumulation_steps 4\n");
  EXPECT_EQ(script.strategy["config"]["units"], "layers");
  EXPECT_EQ(script.workload["batch"], 3);
  EXPECT_EQ(script.micro_batches, 4);
  const Settings guessed = read_settings(
                               "accelerate launch --config_file conf/zero2.yaml a.py --bf16 "
                               "--per_device_train_batch_size 1")
                               .value();
  EXPECT_EQ(guessed.strategy["config"]["zero_optimization"]["stage"], 2);
  EXPECT_TRUE(test::any_contains(guessed.assumed, "of accelerate's file, which is not here"));
  // The same by hand: two files, and flags that win.
  const Settings both = read("again.yaml", "compute_environment: X\ndistributed_type: MULTI_GPU\n",
                             path("sft.yaml") + " --per_device_train_batch_size 5");
  EXPECT_EQ(both.workload["batch"], 5);
  EXPECT_TRUE(both.autocast);
}

TEST_F(HuggingFace, AxolotlsFile) {
  const std::string text =
      "base_model: NousResearch/Llama-3.2-1B\nsequence_len: 8192\n"
      "micro_batch_size: 2\ngradient_accumulation_steps: 8\nbf16: auto\n";
  const Settings job = read("axolotl.yaml", text);
  EXPECT_EQ(job.workload["operators"]["architecture"], "llama3.2_1b");
  EXPECT_EQ(job.workload["operators"]["sequence"], 8192);
  EXPECT_EQ(job.workload["batch"], 2);
  EXPECT_EQ(job.micro_batches, 8);
  EXPECT_FALSE(job.workload["operators"].contains("dtype"));
  EXPECT_TRUE(test::any_contains(job.assumed, "usual precision"));
}

// axolotl 0.19 shards with any fsdp_config; the Trainer itself needs `fsdp`.
TEST_F(HuggingFace, AxolotlShardsByItsSection) {
  const std::string text =
      "base_model: NousResearch/Llama-3.2-1B\nmicro_batch_size: 2\nbf16: true\n"
      "fsdp_config:\n  fsdp_sharding_strategy: SHARD_GRAD_OP\n"
      "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n";
  const Settings job = read("axolotl.yaml", text);
  EXPECT_EQ(job.strategy["dialect"], "fsdp");
  EXPECT_EQ(job.strategy["config"]["sharding_strategy"], "SHARD_GRAD_OP");
  const Settings plain = read("args.yaml",
                              "model_name_or_path: NousResearch/Llama-3.2-1B\n"
                              "per_device_train_batch_size: 2\nbf16: true\n"
                              "fsdp_config: {min_num_params: 0}\n");
  EXPECT_EQ(plain.strategy["dialect"], "hf_trainer");
}

// LLaMA-Factory 0.9.5, ms-swift 4.6 and trl 1.16: activations are computed again, and the first two
// train adapters.
TEST_F(HuggingFace, DefaultsOfTheTrainersAround) {
  const std::string factory =
      "model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\ntemplate: qwen\n"
      "per_device_train_batch_size: 1\nbf16: true\n";
  const std::string full = factory + "finetuning_type: full\n";
  EXPECT_EQ(read("a.yaml", full).workload["activation_checkpointing"], "full");
  EXPECT_EQ(read("a.yaml", full).strategy["config"]["gradient_checkpointing"], true);
  EXPECT_FALSE(read("a.yaml", full + "disable_gradient_checkpointing: true\n")
                   .workload.contains("activation_checkpointing"));
  EXPECT_EQ(sorted(read("a.yaml", factory).adapters),
            parsed(R"({"rank": 8, "targets": [], "trained": [], "bits": 0, "text_alone": true})"));

  const std::string swift =
      "swift sft --model Qwen/Qwen2.5-7B --torch_dtype bfloat16 "
      "--per_device_train_batch_size 1 --gradient_accumulation_steps 4 ";
  const Settings tuned = read_settings(swift + "--tuner_type full").value();
  EXPECT_EQ(tuned.workload["activation_checkpointing"], "full");
  EXPECT_EQ(tuned.workload["operators"]["dtype"], "bf16");
  EXPECT_EQ(read_settings(swift)->adapters["rank"], 8);
  const std::string few = "swift sft --model Qwen/Qwen2.5-7B --tuner_type lora --bf16 true ";
  EXPECT_EQ(read_settings(few + "--gradient_accumulation_steps 4")->workload["batch"], 1);
  EXPECT_TRUE(test::any_contains(read_settings(few + "--per_device_train_batch_size 2")->assumed,
                                 "to reach 16 samples a step"));
  EXPECT_TRUE(read_settings(swift + "--sft_type full")->adapters.is_null());

  const Settings trl = read_settings(
                           "trl sft --model_name_or_path Qwen/Qwen2.5-7B "
                           "--per_device_train_batch_size 1")
                           .value();
  EXPECT_EQ(trl.workload["activation_checkpointing"], "full");
  EXPECT_EQ(trl.workload["operators"]["dtype"], "bf16");
}

// LLaMA-Factory's web page saves settings by names of its own.
TEST_F(HuggingFace, FactorysWebPageSavesOwnNames) {
  const Settings job =
      read("web.yaml",
           "model_name: Qwen3-8B-Base\nmodel_path: /m/Qwen3-8B-Base\ntemplate: default\n"
           "finetuning_type: full\nquantization_bit: none\ntraining_stage: Supervised Fine-Tuning\n"
           "per_device_train_batch_size: 2\ngradient_accumulation_steps: 8\ncutoff_len: 2048\n"
           "compute_type: pure_bf16\n");
  EXPECT_EQ(job.model, "qwen3_8b");
  EXPECT_FALSE(job.autocast);
  EXPECT_EQ(job.workload["operators"]["dtype"], "bf16");
  EXPECT_EQ(job.workload["activation_checkpointing"], "full");
}

// Keys that accelerate refuses are named, and flags of a script's own that mean another training.
TEST_F(HuggingFace, UnreadKeysAreNamed) {
  const Settings job =
      read("m.yaml",
           "compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\nnum_machines: 2\n"
           "num_processes: 8\nmixed_precision: bf16\nmegatron_lm_tp_size: 4\n");
  EXPECT_TRUE(test::any_contains(job.assumed, "nothing of megatron_lm_tp_size, which accelerate"));
  EXPECT_EQ(job.nodes, 2);
  const Settings own =
      read_settings(
          "torchrun --nproc_per_node 8 sft.py --per_device_train_batch_size 1 --bf16 True "
          "--output_dir o --include_expert_lora true --pipe_parallel_size 4 --tp 2 --cp 1")
          .value();
  EXPECT_TRUE(test::any_contains(own.assumed, "include_expert_lora may be of adapters"));
  EXPECT_TRUE(test::any_contains(own.assumed, "pipe_parallel_size 4"));
  EXPECT_TRUE(test::any_contains(own.assumed, "tp 2"));
  EXPECT_FALSE(test::any_contains(own.assumed, "cp 1"));
}

// accelerate starts one process if its file has no type, whatever its number is.
TEST_F(HuggingFace, OneProcessWithoutAType) {
  const std::string text = "compute_environment: X\nnum_processes: 8\ndistributed_type: ";
  EXPECT_EQ(read("a.yaml", text + "'NO'\n").ranks, 1);
  EXPECT_EQ(read("a.yaml", text + "MULTI_GPU\n").ranks, 8);
}

// A launch whose script has settings of its own that are not here, and other trainers' arguments.
TEST_F(HuggingFace, RefusesWhatALaunchLeavesOpen) {
  const auto said = [](const std::string& line) {
    return test::input_error([&] { static_cast<void>(read_settings(line)); });
  };
  EXPECT_TRUE(contains(said("accelerate launch --num_processes 4 train.py --config nowhere.yaml"),
                       "names nowhere.yaml, which is not here"));
  EXPECT_TRUE(contains(said("python train_async.py --num-layers 2 --hidden-size 8 "
                            "--tensor-model-parallel-size 4 --rollout-batch-size 32"),
                       "settings of slime"));
}

// The model lies in a folder next to the settings, as a run leaves it.
TEST_F(HuggingFace, ModelInAFolder) {
  test::write_text(path("config.json"), R"({"model_type": "llama", "hidden_size": 64,
    "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128,
    "vocab_size": 1000, "tie_word_embeddings": false})");
  const std::string text =
      "per_device_train_batch_size: 3\nmax_length: 96\nbf16: true\nmodel_name_or_path: ";
  InitOptions options{.model = write("job.yaml", text + ".\n"), .node = "dgx-h100"};
  const Scenario job = test::scenario_in(init_scenario(options).scenario);
  EXPECT_EQ(job.workload.batch, 3);
  std::int64_t elements = 0;
  for (const Tensor& tensor : job.workload.tensors) elements += tensor.elements;
  // Embedding and head, and for each layer four products, three of the inner half, two norms.
  EXPECT_EQ(elements, 2 * 1000 * 64 + 64 + 2 * (4 * 64 * 64 + 3 * 64 * 128 + 2 * 64));
}

// DeepSpeed refuses a file without its samples: what init writes has them.
TEST_F(HuggingFace, DeepSpeedsSamplesStay) {
  const std::string ds = write("ds.json", R"({"bf16": {"enabled": true},
    "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto",
    "zero_optimization": {"stage": 1}})");
  InitOptions options{.model = "gpt2_small", .node = "dgx-h100"};
  options.settings = ds;
  options.batch = 2;
  options.micro_batches = 3;
  const Json config = init_scenario(options).scenario["strategies"][0]["config"];
  EXPECT_EQ(config["train_micro_batch_size_per_gpu"], 2);
  EXPECT_EQ(config["gradient_accumulation_steps"], 3);
}

TEST_F(HuggingFace, ActivationsOnTheHostAreNamed) {
  const Settings job = read("a.yaml",
                            "base_model: a/b\nmicro_batch_size: 1\n"
                            "gradient_checkpointing: offload\n");
  EXPECT_EQ(job.workload["activation_checkpointing"], "full");
  EXPECT_TRUE(test::any_contains(job.assumed, "where activation_offloading has them on the host"));
}

// Shards in the host's memory, as accelerate and the Trainer name it.
TEST_F(HuggingFace, OffloadsFsdp) {
  const std::string job = "model_name_or_path: a/b\nper_device_train_batch_size: 1\n";
  const auto config = [&](const char* name, const std::string& text) {
    return read(name, text).strategy["config"];
  };
  EXPECT_EQ(config("a.yaml", job + "fsdp: full_shard offload\n")["cpu_offload"], true);
  const std::string launch =
      "distributed_type: FSDP\nmixed_precision: bf16\nfsdp_config:\n  fsdp_offload_params: true\n";
  EXPECT_EQ(config("z.yaml", launch)["cpu_offload"], true);
  EXPECT_EQ(config("z2.yaml", launch + "  fsdp_version: 2\n")["offload_policy"], true);
}

TEST_F(HuggingFace, SaysWhatIsNotModelled) {
  const std::string job = "model_name_or_path: a/b\nper_device_train_batch_size: 1\n";
  const std::pair<const char*, const char*> cases[] = {
      {"finetuning_type: freeze\n", "a part of the model in a way that is not modelled"},
      {"adapter: lora\nuse_dora: true\n", "use_dora: trains a part of the model"},
      {"adapter: lora\nlora_target_modules: '.*proj'\n", "found the pattern '.*proj'"},
      {"unfrozen_parameters:\n  - lm_head.*\n",
       "unfrozen_parameters: found the pattern 'lm_head.*'"},
      {"freeze_parameters_ratio: 0.5\n", "freeze_parameters_ratio: trains a part of the model"},
      {"load_in_4bit: true\n", "a quantised model"},
      {"stage: dpo\n", "stage: trains by preferences or rewards"},
      {"num_generations: 8\n", "num_generations: trains by preferences or rewards"},
      {"fsdp: zero_shard\n", "found 'zero_shard', expected full_shard"},
      {"bf16: maybe\n", "bf16: found 'maybe', expected true or false"},
      {"gradient_accumulation_steps: 1.5\n", "expected a whole number from 1"}};
  for (const auto& [line, words] : cases) {
    EXPECT_TRUE(contains(refusal("a.yaml", job + line), words)) << refusal("a.yaml", job + line);
  }
  EXPECT_TRUE(contains(refusal("tpu.yaml", "compute_environment: X\ndistributed_type: XLA\n"),
                       "XLA is not modelled"));
}

// Samples of a step that other ranks take in other passes than the file says.
TEST_F(HuggingFace, PassesFollowTheSamples) {
  const std::string file =
      write("ds.json", R"({"train_batch_size": 32, "train_micro_batch_size_per_gpu": 2,
                           "gradient_accumulation_steps": 8, "bf16": {"enabled": true},
                           "zero_optimization": {"stage": 3}})");
  InitOptions options{.model = "llama3.2_1b", .node = "dgx-h100"};
  options.settings = file;
  const Begun begun = init_scenario(options);
  EXPECT_EQ(begun.scenario["workload"]["micro_batches"], 2);
  EXPECT_TRUE(test::any_contains(begun.assumed, "2 passes a step in place of the 8"));
  options.settings = path("none.json");
  EXPECT_TRUE(contains(test::input_error([&] { init_scenario(options); }),
                       "none.json: no such file of settings"));
}

// DeepSpeed's own file as YAML, and stages that it names; sizes by a model's table of words.
TEST_F(HuggingFace, DeepSpeedInYaml) {
  const Settings job = read("z.yaml",
                            "zero_optimization: {stage: 2, overlap_comm: true}\n"
                            "bf16: {enabled: true}\ngradient_accumulation_steps: 4\n"
                            "train_micro_batch_size_per_gpu: 2\n");
  EXPECT_EQ(job.framework, "DeepSpeed");
  EXPECT_EQ(job.micro_batches, 4);
  EXPECT_EQ(job.workload["operators"]["dtype"], "bf16");
  const Settings staged = read("p.json",
                               R"({"train_micro_batch_size_per_gpu": 32, "pipeline": {"stages": 2},
                                   "zero_optimization": {"stage": 1}})");
  EXPECT_EQ(staged.workload["parallel"]["pipeline"], 2);
  EXPECT_TRUE(test::any_contains(staged.assumed, "the script cuts the model"));
  const std::string vl = write(
      "v.yaml",
      "model_name_or_path: Qwen/Qwen2-VL-2B-Instruct\nper_device_train_batch_size: 1\nbf16: true\n"
      "deepspeed: zero3\n");
  EXPECT_TRUE(test::any_contains(init_scenario({.model = vl, .node = "dgx-h100"}).assumed,
                                 "by the hidden size 1536: reduce_bucket_size 2359296"));
}

// Flags of a script's own are named.
TEST_F(HuggingFace, ScriptsOwnWords) {
  const Settings own =
      read_settings("torchrun train.py --per_device_train_batch_size 1 --bf16 --use_deepspeed")
          .value();
  EXPECT_TRUE(
      test::any_contains(own.assumed, "summed by DDP, though the script has use_deepspeed"));
  EXPECT_EQ(
      read_settings("horovodrun -np 8 python main.py --train_batch_size 96")->workload["batch"],
      96);
  const auto refused = [](const char* launch) {
    return test::input_error([&] { static_cast<void>(read_settings(launch)); });
  };
  EXPECT_TRUE(contains(
      refused("torchrun tasks/train_torch.py a.yaml --train.data_parallel_mode ddp"), "VeOmni"));
}

// Other scripts' names of a model, and FSDP's variables.
TEST_F(HuggingFace, NamesOfScripts) {
  for (const char* flag :
       {"model_name", "model_id", "model_path", "pretrained_model_name_or_path"}) {
    const auto job = read_settings("torchrun train.py --bf16 --per_device_train_batch_size 1 --" +
                                   std::string(flag) + " Qwen/Qwen3-4B-Thinking-2507");
    EXPECT_EQ(job->model, "qwen3_4b") << flag;
  }
  Json launch = Json::parse(R"({"words": ["torchrun", "train.py", "--bf16", "--fsdp", "auto_wrap",
      "--per_device_train_batch_size", "1"]})");
  launch["environment"]["FSDP_SHARDING_STRATEGY"] = "2";
  const Json captured = {{"launches", Json::array({launch})}};
  EXPECT_EQ(read("l.json", captured.dump()).strategy["config"]["sharding_strategy"],
            "SHARD_GRAD_OP");
}

TEST_F(HuggingFace, ModelsByTheirNames) {
  for (const auto& [name, row] : {std::pair{"openai-community/gpt2", "gpt2_small"},
                                  {"TinyLlama/TinyLlama-1.1B-Chat-v1.0", "tinyllama_1.1b"},
                                  {"mistralai/Mixtral-8x7B-Instruct-v0.1", "mixtral_8x7b"},
                                  {"meta-llama/Llama-3.3-70B-Instruct", "llama3_70b"},
                                  {"Qwen3-0.6B-250424", "qwen3_0.6b"},
                                  {"Qwen/Qwen2.5-7B-Instruct", "qwen2_7b"}}) {
    const Settings job =
        read("a.yaml",
             "per_device_train_batch_size: 1\nmodel_name_or_path: " + std::string(name) + "\n");
    EXPECT_EQ(job.workload["operators"]["architecture"], row);
  }
}

// A config.json's facts in named.json: each model has the parameters that its card states.
TEST_F(HuggingFace, NamedModelsHaveTheirCardsParameters) {
  for (const auto& [name, parameters] : {std::pair{"meta-llama/Llama-2-13b-chat-hf", 13015864320},
                                         {"meta-llama/Llama-2-70b-hf", 68976648192},
                                         {"meta-llama/Llama-3.2-3B-Instruct", 3212749824},
                                         {"mistralai/Mistral-7B-Instruct-v0.3", 7248023552},
                                         {"mistralai/Mistral-7B-v0.1", 7241732096},
                                         {"mistralai/Mistral-Nemo-Instruct-2407", 12247782400},
                                         {"mistralai/Mixtral-8x22B-v0.1", 140620634112},
                                         {"HuggingFaceTB/SmolLM2-135M", 134515008},
                                         {"HuggingFaceTB/SmolLM2-1.7B", 1711376384},
                                         {"Qwen/Qwen2.5-1.5B-Instruct", 1543714304},
                                         {"Qwen/Qwen2.5-3B", 3085938688},
                                         {"/models/Qwen2___5-14B-Instruct", 14770033664},
                                         {"Qwen/Qwen2.5-72B", 72706203648},
                                         {"deepseek-ai/DeepSeek-R1-Distill-Qwen-32B", 32763876352},
                                         {"Qwen/Qwen3-1.7B", 1720574976},
                                         {"Qwen/Qwen3-4B-Instruct-2507", 4022468096},
                                         {"/data/hf-models/Qwen3-8B", 8190735360},
                                         {"Qwen/Qwen3-32B", 32762123264},
                                         {"Qwen/Qwen3-235B-A22B", 235093634560},
                                         {"google/gemma-2b", 2506172416},
                                         {"google/gemma-7b-it", 8537680896},
                                         {"google/gemma-2-9b-it", 9241705984},
                                         {"google/gemma-3-1b-it", 999885952},
                                         {"microsoft/Phi-3-mini-4k-instruct", 3821079552},
                                         {"microsoft/phi-4", 14659507200},
                                         {"facebook/opt-125m", 125239296},
                                         {"facebook/opt-350m", 331196416},
                                         {"EleutherAI/pythia-1.4b", 1414647808},
                                         {"EleutherAI/gpt-neox-20b", 20554567680},
                                         {"bigscience/bloom-560m", 559214592},
                                         {"bert-base-cased", 108310272},
                                         {"FacebookAI/roberta-large", 355359744},
                                         {"distilbert-base-uncased", 66362880},
                                         {"google/flan-t5-xl", 2849757184},
                                         {"Qwen/Qwen2-VL-2B-Instruct", 2208985600},
                                         {"Qwen/Qwen2-VL-7B-Instruct", 8291375616},
                                         {"Qwen/Qwen2.5-VL-3B-Instruct", 3754622976},
                                         {"Qwen/Qwen2.5-VL-32B-Instruct", 33452718336},
                                         {"google/gemma-3-4b-it", 4300079472},
                                         {"google/gemma-3-27b-it", 27432406640},
                                         {"llava-hf/llava-1.5-7b-hf", 7063427072},
                                         {"openai/whisper-small", 240582912},
                                         {"facebook/bart-large", 406291456}}) {
    const std::string text = "per_device_train_batch_size: 1\nmodel_name_or_path: ";
    InitOptions options{.model = write("named.yaml", text + name + "\nbf16: true\n"),
                        .node = "dgx-h100"};
    const Scenario job = test::scenario_in(init_scenario(options).scenario);
    std::int64_t elements = 0;
    for (const Tensor& tensor : job.workload.tensors) elements += tensor.elements;
    EXPECT_EQ(elements, parameters) << name;
  }
  for (const char* other : {"t5-v1_1-base", "Qwen2.5-7B-Instruct-AWQ", "llama-3.2-11b-vision"}) {
    EXPECT_FALSE(read("a.yaml", "per_device_train_batch_size: 1\nmodel_name_or_path: " +
                                    std::string(other) + "\n")
                     .no_model.empty())
        << other;
  }
}

// Samples and formats of the settings, for a model that is known by its parameters: gradients stay
// in fp32 under autocast, and twice the samples take twice the time.
TEST_F(HuggingFace, SettingsOfAModelOfTensors) {
  const auto job = [&](const std::string& lines) {
    InitOptions options{
        .model = write("opt.yaml", "model_name_or_path: facebook/opt-125m\n" + lines),
        .node = "dgx-h100"};
    return test::scenario_in(init_scenario(options).scenario).workload;
  };
  const Workload one = job("per_device_train_batch_size: 1\nbf16: true\n");
  const Workload two = job("per_device_train_batch_size: 2\nbf16: true\n");
  const Workload full = job("per_device_train_batch_size: 2\nbf16: false\n");
  EXPECT_EQ(one.tensors.front().dtype, DType::kFp32);
  EXPECT_NEAR(backward_time(two), 2 * backward_time(one), 1e-9 * backward_time(two));
  EXPECT_GT(backward_time(full), 2 * backward_time(two));
}

// Llama 3 8B: peft prints 3,407,872 for rank 8 at queries and values, 41,943,040 for rank 16 at
// all products.
TEST_F(HuggingFace, AdaptersOfLlama) {
  const std::string text =
      "base_model: NousResearch/Meta-Llama-3-8B\nmicro_batch_size: 2\nbf16: true\nadapter: ";
  const auto job = [&](const std::string& lines) {
    InitOptions options{.model = write("lora.yaml", text + lines), .node = "dgx-h100"};
    return test::scenario_in(init_scenario(options).scenario).workload;
  };
  const auto in_json = [&](const std::string& lines) {
    return init_scenario({.model = write("lora.yaml", text + lines), .node = "dgx-h100"})
        .scenario["workload"]["tensors"];
  };
  const auto trained = [](const Workload& workload) {
    std::int64_t elements = 0;
    for (const Tensor& tensor : workload.tensors) elements += tensor.frozen ? 0 : tensor.elements;
    return elements;
  };
  const auto frozen = [](const Workload& workload) {
    Bytes bytes = 0;
    for (const Tensor& tensor : workload.tensors) bytes += tensor.frozen ? tensor.bytes() : 0;
    return bytes;
  };
  const Workload few = job("lora\nlora_r: 8\nlora_target_modules: [q_proj, v_proj]\n");
  const Workload all = job("lora\nlora_r: 16\nlora_target_linear: true\n");
  const Workload packed = job("qlora\nload_in_4bit: true\nlora_r: 16\nlora_target_linear: true\n");
  EXPECT_EQ(trained(few), 3407872);
  EXPECT_EQ(trained(all), 41943040);
  EXPECT_EQ(trained(packed), 41943040);
  EXPECT_EQ(std::ranges::count(few.tensors, false, &Tensor::frozen), 2 * 2 * 32);
  EXPECT_EQ(few.tensors.front().dtype, DType::kBf16);
  EXPECT_EQ(gradient_bytes(few), 4 * 3407872);
  constexpr Bytes kAll = 2 * 8030261248;
  EXPECT_EQ(frozen(all), kAll);
  // Embedding, head and 65 norms stay in bf16.
  constexpr Bytes kPlain = 2 * (2 * 128256 * 4096 + 65 * 4096);
  EXPECT_EQ(frozen(packed), kPlain + (kAll - kPlain) / 4);
  // Frozen products have no gradients of weights: the backward pass takes one forward pass, less
  // the products before the first adapter.
  const Workload wider =
      job("lora\nlora_r: 8\nlora_target_modules: [q_proj, v_proj]\n"
          "sequence_len: 4096\n");
  EXPECT_NEAR(wider.forward, 4 * few.forward, 1e-9 * wider.forward);
  // 8.03 billion weights but the embedding's, 2 samples of 1024 tokens.
  double flops = 0;
  for (const Json& tensor : in_json("lora\nlora_r: 8\nlora_target_modules: [q_proj, v_proj]\n")) {
    flops += tensor.value("forward_flops", 0.0);
  }
  EXPECT_NEAR(flops, 2.0 * 2 * 1024 * (8030261248 - 128256 * 4096), 0.002 * flops);
  EXPECT_GT(backward_time(few), 0.9 * few.forward);
  EXPECT_LT(backward_time(few), 1.05 * few.forward);
  const std::string none = test::input_error([&] { job("lora\nlora_target_modules: [c_attn]\n"); });
  EXPECT_TRUE(contains(none, "'c_attn' is none of the model's modules: ")) << none;
}

// axolotl's and ms-swift's lists of names: the others are frozen. axolotl matches from the name's
// start, so a layer's part alone matches nothing.
TEST_F(HuggingFace, PartsOfAModel) {
  const auto trained = [&](const std::string& lines, const std::string& said) {
    const Begun begun = init_scenario(
        {.model =
             write("part.yaml",
                   "micro_batch_size: 2\ngradient_accumulation_steps: 1\nbf16: true\n" + lines),
         .node = "dgx-h100"});
    EXPECT_TRUE(test::any_contains(begun.assumed, said)) << lines;
    std::int64_t elements = 0;
    for (const Tensor& tensor : test::scenario_in(begun.scenario).workload.tensors) {
      elements += tensor.frozen ? 0 : tensor.elements;
    }
    return elements;
  };
  constexpr std::int64_t kHead = 128256 * 4096, kHalf = 4096 * 14336;
  EXPECT_EQ(trained("base_model: NousResearch/Meta-Llama-3-8B\nunfrozen_parameters:\n"
                    "- ^lm_head.weight$\n- model.layers.3.mlp\n- input_layernorm\n",
                    "no parameter begins with: input_layernorm"),
            kHead + 3 * kHalf);
  EXPECT_EQ(trained("model: LLM-Research/Meta-Llama-3-8B\ntuner_type: full\n"
                    "freeze_parameters: model.embed_tokens model.layers\n"
                    "trainable_parameters: model.layers.31.mlp.up_proj\n",
                    "a part of the model"),
            kHead + 4096 + kHalf);
}

// LLaMA-Factory and ms-swift freeze the parts that read images unless they are told otherwise, if
// the whole model is trained, too.
TEST_F(HuggingFace, PartsThatReadImagesAreFrozen) {
  const std::string factory =
      "model_name_or_path: Qwen/Qwen2-VL-2B-Instruct\nstage: sft\ntemplate: qwen2_vl\n"
      "finetuning_type: full\nbf16: true\nper_device_train_batch_size: 2\n";
  const std::string swift =
      "model: Qwen/Qwen2-VL-2B-Instruct\ntuner_type: full\ntemplate: qwen2_vl\n"
      "bf16: true\nmax_length: 4096\ngradient_accumulation_steps: 1\n"
      "per_device_train_batch_size: 1\n";
  // Trained parts, of t(ower), m(erger) and l(anguage).
  const auto trained = [&](const std::string& text) {
    const Begun begun = init_scenario({.model = write("f.yaml", text), .node = "dgx-h100"});
    std::set<char> parts;
    for (const Tensor& tensor : test::scenario_in(begun.scenario).workload.tensors) {
      const bool sees = tensor.name.starts_with("vision.");
      const char part = tensor.name.starts_with("vision.merger") ? 'm' : sees ? 't' : 'l';
      if (!tensor.frozen) parts.insert(part);
    }
    return std::string(parts.begin(), parts.end());
  };
  EXPECT_EQ(trained(factory), "l");
  EXPECT_EQ(trained(factory + "freeze_multi_modal_projector: false\n"), "lm");
  EXPECT_EQ(trained(factory + "freeze_vision_tower: false\n"), "lt");
  EXPECT_EQ(trained(swift), "l");
  EXPECT_EQ(trained(swift + "freeze_vit: false\nfreeze_aligner: false\n"), "lmt");
  EXPECT_EQ(trained(swift + "freeze_llm: true\nfreeze_aligner: false\n"), "m");
  // FLOPs are said once, by the tokens of the settings.
  for (const std::string& text : {swift, swift + "freeze_vit: false\nfreeze_aligner: false\n"}) {
    const Begun said = init_scenario({.model = write("s.yaml", text), .node = "dgx-h100"});
    EXPECT_EQ(std::ranges::count_if(
                  said.assumed, [](const std::string& each) { return each.starts_with("FLOPs"); }),
              1);
    EXPECT_TRUE(test::any_contains(said.assumed, "products with 4096 tokens a sample"));
  }
  const Begun text =
      init_scenario({.model = write("t.yaml",
                                    "model_name_or_path: Qwen/Qwen2.5-0.5B\nstage: sft\n"
                                    "template: qwen\nfinetuning_type: full\nbf16: true\n"
                                    "per_device_train_batch_size: 2\n"),
                     .node = "dgx-h100"});
  EXPECT_TRUE(text.scenario["workload"].contains("operators"));
}

// Adapters at the 28 layers of Qwen2-VL's text, of rank 8, 3,584 wide with 4 of 28 heads for keys,
// 18,944 inside: LLaMA-Factory freezes the parts that read images.
TEST_F(HuggingFace, AdaptersNextToImages) {
  const std::string text =
      "model_name_or_path: Qwen/Qwen2-VL-7B-Instruct\nstage: sft\ntemplate: qwen2_vl\n"
      "finetuning_type: lora\nlora_target: all\nbf16: true\ncutoff_len: 2048\n"
      "per_device_train_batch_size: 2\n";
  const Begun begun = init_scenario({.model = write("vl.yaml", text), .node = "dgx-h100"});
  std::int64_t trained = 0;
  for (const Tensor& tensor : test::scenario_in(begun.scenario).workload.tensors) {
    trained += tensor.frozen ? 0 : tensor.elements;
  }
  constexpr std::int64_t kWide = 3584, kKeys = 512, kInner = 18944;
  EXPECT_EQ(trained, 28 * 8 * (2 * (kWide + kWide) + 2 * (kWide + kKeys) + 3 * (kWide + kInner)));
  EXPECT_TRUE(contains(test::input_error([&] {
                         init_scenario({.model = write("v.yaml", text + "freeze_vision_tower: "
                                                                        "false\n"),
                                        .node = "dgx-h100"});
                       }),
                       "that also reads images"));
}

// peft's usual targets, and makers' names, at products that have another name here: pythia-70m has
// 6 layers, 512 wide, with merged queries, keys and values.
TEST_F(HuggingFace, AdaptersAtMergedProducts) {
  const std::string text =
      "model_name_or_path: EleutherAI/pythia-70m\nuse_peft: true\nlora_r: 16\nbf16: true\n"
      "per_device_train_batch_size: 2\n";
  const auto trained = [&](const std::string& lines) {
    const Begun begun = init_scenario({.model = write("p.yaml", text + lines), .node = "dgx-h100"});
    std::int64_t elements = 0;
    for (const Tensor& tensor : test::scenario_in(begun.scenario).workload.tensors) {
      elements += tensor.frozen ? 0 : tensor.elements;
    }
    return elements;
  };
  EXPECT_EQ(trained(""), 6 * 16 * (512 + 3 * 512));
  EXPECT_EQ(trained("lora_target_modules: [query_key_value, dense]\n"),
            6 * 16 * (512 + 3 * 512 + 512 + 512));
  EXPECT_TRUE(contains(test::input_error([&] { trained("lora_target_modules: [q_proj]\n"); }),
                       "'q_proj' is none of the model's modules"));
}

// A model in four bits is trained by adapters, whatever its script calls them.
TEST_F(HuggingFace, QuantisedModelsHaveAdapters) {
  const Settings job = read("a.yaml",
                            "model_name_or_path: Qwen/Qwen3-4B-Instruct-2507\nload_in_4bit: true\n"
                            "lora_rank: 4\nper_device_train_batch_size: 2\nbf16: true\n");
  EXPECT_EQ(job.adapters["rank"], 4);
  EXPECT_EQ(job.adapters["bits"], 4);
  EXPECT_TRUE(contains(refusal("b.yaml", "model_name_or_path: a\nload_in_8bit: true\nbf16: true\n"),
                       "load_in_4bit: trains a quantised model"));
}

// Trainers that load a model in half precision sum its gradients so, but for FSDP.
TEST_F(HuggingFace, ModelsInHalfPrecision) {
  const std::string text =
      "model_name_or_path: Qwen/Qwen2.5-7B\nper_device_train_batch_size: 1\nbf16: true\n";
  EXPECT_TRUE(read("a.yaml", text).autocast);
  EXPECT_FALSE(read("b.yaml", text + "torch_dtype: bfloat16\n").autocast);
  EXPECT_TRUE(read("c.yaml", text + "torch_dtype: float32\n").autocast);
  EXPECT_TRUE(read("d.yaml", text + "torch_dtype: bfloat16\nfsdp: full_shard\n").autocast);
  EXPECT_FALSE(
      read("e.yaml", "base_model: Qwen/Qwen2.5-7B\nmicro_batch_size: 1\nbf16: true\n").autocast);
}

// The same under sharded parameters: the units that peft's policy asks for, and a rank's weights.
// Llama 3 8B has 8,030,261,248 frozen parameters; of 8 ranks each has an eighth, of 2 bytes, but 4
// where accelerate keeps FSDP 2's in fp32.
TEST_F(HuggingFace, ShardedAdaptersOfLlama) {
  const std::string text =
      "model_name_or_path: NousResearch/Meta-Llama-3-8B\nper_device_train_batch_size: 1\n"
      "bf16: true\nuse_peft: true\nlora_r: 8\nlora_target_modules: [q_proj, v_proj]\n";
  struct Held {
    std::size_t units = 0;
    double weights = 0;
    Begun begun;
  };
  const auto job = [&](const std::string& lines) {
    Held held{.begun =
                  init_scenario({.model = write("lora.yaml", text + lines), .node = "dgx-h100"})};
    const Scenario scenario = test::scenario_in(held.begun.scenario);
    const Strategy& strategy = scenario.strategies.front();
    held.units = strategy.fusion.groups.size();
    held.weights = measure::memory_of(scenario, strategy).weights;
    return held;
  };
  constexpr double kFrozen = 8030261248.0 / 8, kTrained = 3407872.0 / 8;
  const Held first = job("fsdp: full_shard auto_wrap\n");
  EXPECT_EQ(first.units, 32u * (1 + 2 * 2) + 1);
  EXPECT_NEAR(first.weights, 2 * kFrozen + 4 * kTrained, 1);
  const Held second = job("fsdp: full_shard auto_wrap\nfsdp_config:\n  fsdp_version: 2\n");
  EXPECT_EQ(second.units, 1u);
  EXPECT_NEAR(second.weights, 4 * (kFrozen + kTrained), 1);
  EXPECT_TRUE(test::any_contains(second.begun.assumed, "passes peft's policy over"));
  const std::string file =
      write("axolotl.yaml",
            "base_model: NousResearch/Meta-Llama-3-8B\nmicro_batch_size: 1\nbf16: true\n"
            "adapter: lora\nlora_r: 8\nlora_target_modules: [q_proj, v_proj]\nfsdp_version: 2\n"
            "fsdp_config:\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"
            "  transformer_layer_cls_to_wrap: LlamaDecoderLayer\n");
  EXPECT_TRUE(test::any_contains(init_scenario({.model = file, .node = "dgx-h100"}).assumed,
                                 "axolotl is assumed to wrap"));
  const Held third = job("deepspeed: zero3\n");
  EXPECT_NEAR(third.weights, 2 * (kFrozen + kTrained), 1);
}

// DeepSpeed's files that trainers bring, and others by the stage in their names.
TEST_F(HuggingFace, DeepSpeedsFilesThatAreNotHere) {
  const auto zero = [&](const std::string& name) {
    const Settings job = read("z.yaml",
                              "model_name_or_path: Qwen/Qwen3-8B\nbf16: true\n"
                              "per_device_train_batch_size: 1\ndeepspeed: " +
                                  name);
    EXPECT_TRUE(test::any_contains(job.assumed, "a file that is not here")) << name;
    return sorted(job.strategy["config"]["zero_optimization"]);
  };
  EXPECT_EQ(zero("zero2"), parsed(R"({"stage": 2, "overlap_comm": true,
    "reduce_bucket_size": 200000000, "allgather_bucket_size": 200000000})"));
  EXPECT_EQ(zero("examples/deepspeed/ds_z2_config.json"),
            parsed(R"({"stage": 2, "overlap_comm": false})"));
  EXPECT_EQ(zero("conf/stage_1.json"), parsed(R"({"stage": 1})"));
  EXPECT_EQ(zero("ds_config_zero3.json")["stage3_prefetch_bucket_size"], "auto");
  EXPECT_EQ(zero("examples/deepspeed/ds_z3_offload_config.json")["offload_param"]["device"], "cpu");
  EXPECT_EQ(zero("zero2_offload")["offload_optimizer"]["device"], "cpu");
  EXPECT_FALSE(zero("zero2_offload").contains("offload_param"));
  EXPECT_FALSE(zero("zero3_offload").contains("offload_optimizer"));
  EXPECT_EQ(
      zero("a/deepspeed_configs/zero2.json"),
      parsed(R"({"stage": 2, "overlap_comm": true, "offload_optimizer": {"device": "cpu"}})"));
  const auto shards = zero("deepspeed_configs/zero3_bf16_cpuoffload_params.json");
  EXPECT_EQ(shards["offload_param"]["device"], "cpu");
  EXPECT_EQ(shards["max_live_parameters"], 0);
  EXPECT_FALSE(shards.contains("offload_optimizer"));
}

// Scripts that torchvision and timm ship, by the arguments that mark them.
TEST_F(HuggingFace, ScriptsThatTrainImages) {
  const Settings vision = read_settings(
                              "torchrun --nproc_per_node=6 train.py --data-path /images "
                              "--model resnet50 -b 360 --output-dir runs --amp --sync-bn")
                              .value();
  EXPECT_EQ(vision.workload["operators"]["architecture"], "resnet50_v1.5");
  EXPECT_EQ(vision.workload["operators"]["dtype"], "fp16");
  EXPECT_TRUE(vision.autocast);
  EXPECT_EQ(vision.workload["batch"], 360);
  EXPECT_EQ(vision.ranks, 6);
  EXPECT_TRUE(test::any_contains(vision.assumed, "nothing gained or lost by: sync_bn"));
  const Settings timm = read_settings(
                            "torchrun --nproc_per_node=4 train.py --data-dir /images "
                            "--model resnet18 --grad-accum-steps 2")
                            .value();
  EXPECT_EQ(timm.workload["batch"], 128);
  EXPECT_EQ(timm.workload["operators"]["dtype"], "tf32");
  EXPECT_EQ(timm.micro_batches, 2);
  // A model of a name that is not known is not guessed.
  EXPECT_FALSE(read_settings("torchrun train.py --data-path /images --model mine_50"));
}

// OpenRLHF 0.8 gives DeepSpeed the samples of a step; other programs of it run more than one model.
TEST_F(HuggingFace, OpenRlhfsTuning) {
  const std::string flags =
      " --pretrain Qwen/Qwen2.5-1.5B-Instruct --zero_stage 3 --bf16 --max_len 4096 "
      "--micro_train_batch_size 2 --train_batch_size 64 --gradient_checkpointing";
  const std::string program = "deepspeed --module openrlhf.cli.";
  const auto launch = [&](const char* script) { return program + script + flags; };
  const Settings job = read_settings(launch("train_sft")).value();
  EXPECT_EQ(job.framework, "OpenRLHF");
  EXPECT_EQ(job.model, "qwen2.5_1.5b");
  EXPECT_EQ(job.global_batch, 64);
  EXPECT_EQ(job.workload["batch"], 2);
  EXPECT_EQ(job.workload["operators"]["sequence"], 4096);
  EXPECT_EQ(job.workload["activation_checkpointing"], "full");
  EXPECT_EQ(job.strategy["config"]["zero_optimization"]["stage"], 3);
  // From 0.10 on the same flags have sections.
  const Settings newer =
      read_settings(program +
                    "train_sft --model.model_name_or_path Qwen/Qwen2.5-1.5B-Instruct "
                    "--ds.zero_stage 3 --data.max_len 4096 --train.micro_batch_size 2 "
                    "--train.batch_size 64 --model.gradient_checkpointing_enable")
          .value();
  EXPECT_EQ(newer.model, job.model);
  EXPECT_EQ(newer.workload, job.workload);
  EXPECT_EQ(newer.strategy, job.strategy);
  EXPECT_EQ(newer.global_batch, 64);
  const auto refused = [&](const std::string& command) {
    return test::input_error([&] { static_cast<void>(read_settings(command)); });
  };
  EXPECT_TRUE(
      contains(refused(launch("train_dpo")), "OpenRLHF's train_dpo, which also runs other models"));
  EXPECT_TRUE(contains(refused(launch("train_sft") + " --ring_attn_size 2"),
                       "cuts of a model over ranks are not modelled"));
}

// The whole way: a scenario that is read again, of the model and the layers that it names.
TEST_F(HuggingFace, BecomesAScenario) {
  InitOptions options;
  options.model = write("job.yaml", R"(model_name_or_path: meta-llama/Llama-3.1-8B
per_device_train_batch_size: 1
gradient_accumulation_steps: 4
bf16: true
gradient_checkpointing: true
max_length: 2048
fsdp: [full_shard, auto_wrap]
fsdp_config: {fsdp_transformer_layer_cls_to_wrap: LlamaDecoderLayer}
)");
  options.node = "dgx-h100";
  const Begun begun = init_scenario(options);
  const Scenario scenario =
      input::parse_scenario(input::document_of("the scenario", begun.scenario));
  EXPECT_EQ(scenario.workload.micro_batches, 4);
  ASSERT_FALSE(scenario.strategies.empty());
  const Strategy& own = scenario.strategies.front();
  EXPECT_EQ(own.fusion.groups.size(), 33U);  // 32 layers and the root
  EXPECT_EQ(own.traits.gather_bytes, 2);
  EXPECT_EQ(own.fusion.sum_format, DType::kBf16);
  EXPECT_FALSE(own.each_micro_batch);

  // Processes that the settings start, and an optimizer that memory knows nothing of, are told.
  InitOptions other = options;
  other.model = "llama3_8b";
  other.settings = write("zero.yaml",
                         "compute_environment: X\ndistributed_type: DEEPSPEED\n"
                         "num_processes: 16\nmixed_precision: bf16\n");
  other.flags = write("args.yaml", "per_device_train_batch_size: 1\noptim: adafactor\n");
  EXPECT_EQ(init_scenario(other).scenario["cluster"]["nodes"], 2);
  other.nodes = 1;
  const Begun told = init_scenario(other);
  EXPECT_TRUE(test::any_contains(told.assumed,
                                 "8 GPUs, as --nodes and the node have it, in place "
                                 "of the 16 processes"));
  EXPECT_TRUE(test::any_contains(told.assumed, "in place of optim adafactor"));
}

}  // namespace
}  // namespace syncline::job
