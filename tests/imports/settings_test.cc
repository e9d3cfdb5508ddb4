// Frameworks' own settings: what they say of a job, and that layouts come back as they were.
#include "imports/frameworks/settings.h"

#include <gtest/gtest.h>

#include <random>

#include "core/plan.h"
#include "formats/dialect/write.h"
#include "imports/frameworks/shell.h"
#include "imports/init.h"
#include "tests/support/jobs.h"

namespace syncline::job {
namespace {

using test::contains;

constexpr const char* kModel =
    "--num-layers 8 --hidden-size 256 --num-attention-heads 8 --ffn-hidden-size 512 "
    "--seq-length 64 --vocab-size 1000 --position-embedding-type rope --swiglu "
    "--untie-embeddings-and-output-weights --disable-bias-linear --normalization RMSNorm --bf16 ";

nlohmann::json sorted(const Json& json) { return nlohmann::json::parse(json.dump()); }
nlohmann::json parsed(const char* text) { return nlohmann::json::parse(text); }

Settings settings_of(const std::string& text) { return read_settings(text).value(); }

// Why settings are refused; "none" where a text has none.
std::string refusal_of_settings(const std::string& text) {
  bool found = true;
  const std::string said = test::input_error([&] { found = read_settings(text).has_value(); });
  return found ? said : "none";
}

Settings of_file(const char* name, const std::string& text) {
  const test::Scratch scratch;
  test::write_text(scratch.path(name), text);
  return settings_of(scratch.path(name));
}

std::string refusal_of_file(const char* name, const std::string& text) {
  const test::Scratch scratch;
  test::write_text(scratch.path(name), text);
  const std::string said = refusal_of_settings(scratch.path(name));
  return said.starts_with(scratch.folder()) ? said.substr(scratch.folder().size() + 1) : said;
}

bool assumes(const Settings& settings, const std::string& words) {
  return test::any_contains(settings.assumed, words);
}

TEST(Flags, LinesAreReadLikeAShell) {
  const Json flags = frameworks::flags_of(R"(#!/bin/bash
# --commented 1
#SBATCH --nodes 4
export NCCL_DEBUG=INFO
FOO=1 torchrun --nproc_per_node=8 pretrain_gpt.py \
    --quoted "two words" --empty '' --joined a'b c'"d" \
    --lr 1e-4 --list 1 2 -3 "--fp8-format hybrid" \
    --swiglu --twice 1 --twice 2 -u ignored 2>&1 | tee log.txt; echo done)");
  EXPECT_EQ(flags, Json::parse(R"({"quoted": "two words", "empty": "", "joined": "ab cd",
    "lr": 1e-4, "list": [1, 2, -3], "fp8-format": "hybrid", "swiglu": true, "twice": 2})"));
  EXPECT_EQ(frameworks::flags_of("--num-layers 2\n--seq-length 64  # a file of flags\n--bf16\n"),
            Json::parse(R"({"num-layers": 2, "seq-length": 64, "bf16": true})"));
  EXPECT_EQ(frameworks::flags_of("x.py --a \"b \\\" c\" \"$@\" >log 2>>log < in &"),
            Json::parse(R"({"a": "b \" c"})"));
  EXPECT_EQ(frameworks::flags_of("x.py --a $S --b '$S'"), Json::parse(R"({"a": "$S", "b": "$S"})"));
}

TEST(Flags, AreThoseOfTheTrainingLaunch) {
  const auto launches = frameworks::launches_in_lines(frameworks::read_shell_lines(
      "srun --mpi=pmix torchrun --nproc_per_node 8 pretrain_gpt.py --tensor-model-parallel-size 2\n"
      "python tools/eval.py --num-layers 3 --micro-batch-size 16 --a --b\n"
      "mkdir -p --parents out\n"));
  const frameworks::TrainingCommand job = frameworks::training_command(launches, 0);
  EXPECT_EQ(job.flags, Json::parse(R"({"tensor-model-parallel-size": 2})"));
  ASSERT_EQ(job.said.size(), 2U);
  EXPECT_EQ(job.said[0],
            "launch 1, srun pretrain_gpt.py, as the job (--launch chooses another: 2, python "
            "eval.py; 3, mkdir)");
  EXPECT_EQ(job.said[1], "nothing of what srun is told: --mpi");
  EXPECT_EQ(frameworks::training_command(launches, 2).flags["micro-batch-size"], 16);
  EXPECT_TRUE(frameworks::training_command({}, 0).flags.empty());
}

// What only a shell can tell is named with its line, and capture with it.
TEST(Flags, NameTheLineThatNeedsAShell) {
  const std::string line = "torchrun pretrain_gpt.py --num-layers 2 --seq-length 64\n";
  for (const auto& [script, asks] :
       {std::pair{"TP=4\n" + line + "x --tp $TP\n", "the variable $TP in line 3"},
        {line + "x \"a\nb\" --tp ${TP:-2}\n", "the variable ${TP:-2} in line 3"},
        {"if true; then\n" + line + "fi\n", "'if' in line 1"},
        {"\nfor i in 1 2; do " + line + "done\n", "'for' in line 2"},
        {"A=(\n --num-layers 2\n)\n", "a '(' in line 1"},
        {"cat <<EOF\nEOF\n" + line, "a here-document in line 1"},
        {"N=$(nproc)\n" + line, "the output of $(nproc) in line 1"},
        {"N=`nproc`\n" + line, "the output of `nproc` in line 1"},
        {"source env.sh\n" + line, "'source' in line 1"}}) {
    EXPECT_EQ(refusal_of_file("run.sh", script).substr(0, 26 + std::strlen(asks)),
              "run.sh: asks for a shell by " + std::string(asks).substr(0, std::strlen(asks) - 2))
        << script;
    EXPECT_TRUE(contains(refusal_of_file("run.sh", script), asks)) << script;
    EXPECT_TRUE(contains(refusal_of_file("run.sh", script), "syncline capture -o launch.json"));
  }
  EXPECT_TRUE(contains(refusal_of_file("run.sh", "#!/bin/sh\ntorchrun a.py '$TP' \\$TP\n"),
                       "no command is given flags"));
}

// A captured launch is read with its files, wherever they were.
TEST(Flags, AreReadFromACapturedLaunch) {
  const auto captured = [](const char* launches) {
    return of_file("launch.json", "{\"launches\": " + std::string(launches) + "}");
  };
  const Settings trainer = captured(R"([{"words": ["accelerate", "launch", "--config_file",
    "conf/zero.yaml", "-m", "my.sft", "job.yaml", "--bf16", "True"], "folder": "/nowhere",
    "files": {"conf/zero.yaml": "distributed_type: DEEPSPEED\nmixed_precision: bf16\ndeepspeed_config:\n  deepspeed_config_file: z.json\n",
              "z.json": "{\"zero_optimization\": {\"stage\": 1}}",
              "job.yaml": "per_device_train_batch_size: 5\nlearning_rate: 1\n"}}])");
  EXPECT_EQ(trainer.strategy["config"]["zero_optimization"]["stage"], 1);
  EXPECT_EQ(trainer.workload["batch"], 5);
  const Settings titan = captured(R"([{"words": ["torchrun", "--nproc_per_node=8", "-m",
    "torchtitan.train", "--job.config_file", "a.toml", "--parallelism.tensor_parallel_degree=2"],
    "files": {"a.toml": "[model]\nname = 'llama3'\nflavor = '8B'\n"}}])");
  EXPECT_EQ(titan.framework, "torchtitan");
  EXPECT_EQ(titan.workload["operators"]["architecture"], "llama3_8b");
  EXPECT_EQ(titan.workload["parallel"]["tensor"], 2);
  const Settings factory = captured(R"([{"words": ["llamafactory-cli", "train", "sft.yaml"],
    "files": {"sft.yaml": "per_device_train_batch_size: 2\nfinetuning_type: full\nstage: sft\n"}}])");
  EXPECT_EQ(factory.workload["batch"], 2);
  const Settings lightning = captured(R"([{"words": ["python", "main.py", "fit", "--config",
    "c.yaml", "--trainer.accumulate_grad_batches", "4", "--trainer.strategy=deepspeed_stage_1"],
    "files": {"c.yaml": "trainer: {devices: 8, strategy: ddp}\n"}}])");
  EXPECT_EQ(lightning.framework, "Lightning");
  EXPECT_EQ(lightning.micro_batches, 4);
  EXPECT_EQ(lightning.strategy["config"]["zero_optimization"]["stage"], 1);
  const Settings composer = captured(R"([{"words": ["composer", "train.py", "m.yaml",
    "fsdp_config.sharding_strategy=SHARD_GRAD_OP"], "files": {"m.yaml":
    "global_train_batch_size: 8\ndevice_train_microbatch_size: 1\nfsdp_config: {}\n"}}])");
  EXPECT_EQ(composer.strategy["config"]["sharding_strategy"], "SHARD_GRAD_OP");
  const Settings inside = captured(R"([{"words": ["deepspeed", "t.py", "--deepspeed",
    "{\"zero_optimization\": {\"stage\": 3}}", "--per_device_train_batch_size", "1"]}])");
  EXPECT_EQ(inside.strategy["config"]["zero_optimization"]["stage"], 3);
  const Settings horovod = captured(R"([{"words": ["python", "t.py", "--batch-size", "8"],
    "around": ["mpirun", "-np", "16", "-x", "HOROVOD_CYCLE_TIME=2"],
    "environment": {"HOROVOD_FUSION_THRESHOLD": "1048576"}}])");
  EXPECT_EQ(horovod.strategy["config"],
            Json::parse(R"({"HOROVOD_FUSION_THRESHOLD": 1048576, "HOROVOD_CYCLE_TIME": 2})"));
  EXPECT_TRUE(
      contains(refusal_of_file("l.json", R"({"launches": [{"words": ["torchrun", "a.py"]}]})"),
               "of the launch 'torchrun a.py' no flags or files are known"));
  for (const char* wrong : {R"([{"words": "a"}])", R"([{"words": [1]}])",
                            R"([{"words": ["a"], "files": [1]}])", R"([{"words": []}, 1])"}) {
    EXPECT_TRUE(contains(refusal_of_file("l.json", "{\"launches\": " + std::string(wrong) + "}"),
                         "expected a list") ||
                contains(refusal_of_file("l.json", "{\"launches\": " + std::string(wrong) + "}"),
                         "expected texts"))
        << wrong;
  }
}

TEST(Flags, AnyTextHasAnEnd) {
  for (const char* text : {"",
                           "--",
                           "-- --",
                           "'",
                           "\"",
                           "\\",
                           "$",
                           "${",
                           "${a",
                           "--a ${b:-",
                           "--a='",
                           "#",
                           "`",
                           "<",
                           "--a \"--b",
                           "\"'--a '\"",
                           "A=\"$A --b 1\" A=$A",
                           "--a=--b",
                           "--a $(",
                           "\"$",
                           "\"\\"}) {
    (void)frameworks::flags_of(text);
  }
  std::string deep_key = "--a";
  for (int i = 0; i < 20000; ++i) deep_key += ".a";
  EXPECT_EQ(refusal_of_settings(deep_key + " 1"), "none");
  for (const char* part : {"(", "{ ", "if ", "$(", "${A:-", "\"$(", "[ ! ", "f() { ", "A=(", "'"}) {
    std::string deep;
    for (int i = 0; i < 20000; ++i) deep += part;
    EXPECT_TRUE(frameworks::flags_of(deep).empty()) << part;
  }
}

// Llama 3 70B as Megatron's users run it.
TEST(Megatron, FlagsAreAJob) {
  const Settings job = settings_of(
      "pretrain_gpt.py --num-layers 80 --hidden-size 8192 --ffn-hidden-size 28672 "
      "--num-attention-heads 64 --group-query-attention --num-query-groups 8 --kv-channels 128 "
      "--seq-length 8192 --position-embedding-type rope --swiglu --normalization RMSNorm "
      "--disable-bias-linear --untie-embeddings-and-output-weights --bf16 --recompute-activations "
      "--tensor-model-parallel-size 4 --pipeline-model-parallel-size 4 "
      "--num-layers-per-virtual-pipeline-stage 5 --context-parallel-size 2 --sequence-parallel "
      "--micro-batch-size 2 --global-batch-size 128 --overlap-grad-reduce "
      "--use-distributed-optimizer --no-overlap-p2p-communication --lr 1e-4 --save /x --foo 1 "
      "--tp-comm-overlap --delay-wgrad-compute --swiglue");
  const Json& workload = job.workload;
  EXPECT_EQ(workload["parallel"],
            Json::parse(R"({"tensor": 4, "pipeline": 4, "context": 2, "virtual_stages": 4,
                            "sequence": true, "overlap_tensor": true,
                            "overlap_sends": false})"));
  EXPECT_EQ(workload["name"], "llama3_70b");
  EXPECT_EQ(workload["batch"], 2);
  EXPECT_EQ(workload["activation_checkpointing"], "selective");
  EXPECT_EQ(job.global_batch, 128);
  const Json& operators = workload["operators"];
  EXPECT_EQ(operators["architecture"], "llama");
  EXPECT_EQ(operators["dtype"], "bf16");
  EXPECT_EQ(operators["sequence"], 8192);
  // 128256 words in multiples of 128 x 4 ranks.
  EXPECT_EQ(operators["shape"],
            Json::parse(R"({"layers": 80, "hidden": 8192, "heads": 64, "kv_heads": 8,
                            "head_width": 128, "inner": 28672, "positions": 131072,
                            "words": 128512})"));
  EXPECT_EQ(job.strategy, Json::parse(R"({"dialect": "megatron", "config":
                            {"overlap-grad-reduce": true, "use-distributed-optimizer": true}})"));
  EXPECT_TRUE(assumes(job, "a vocabulary of 128256"));
  EXPECT_TRUE(assumes(job, "what is left out: --delay-wgrad-compute"));
  EXPECT_TRUE(
      assumes(job, "what Megatron does not have: --foo, --swiglue (did you mean 'swiglu'?)"));
  EXPECT_FALSE(assumes(job, "--lr"));
}

// As Megatron's documentation has it, and with the two numbers of its ends.
TEST(Megatron, LayoutsByTheirLayers) {
  const auto layers = [](const std::string& flags) {
    return settings_of(std::string(kModel) + flags).workload["parallel"];
  };
  EXPECT_EQ(layers("--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout "
                   "'E,t*3|(tt|)*2,tL'"),
            Json::parse(R"({"pipeline": 2, "virtual_stages": 2, "layers": [3, 2, 2, 1]})"));
  EXPECT_EQ(layers("--pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 1 "
                   "--decoder-last-pipeline-num-layers 3"),
            Json::parse(R"({"pipeline": 4, "layers": [1, 2, 2, 3]})"));
  EXPECT_EQ(layers("--pipeline-model-parallel-size 2 --num-virtual-stages-per-pipeline-rank 2 "
                   "--decoder-first-pipeline-num-layers 2"),
            Json::parse(R"({"pipeline": 2, "virtual_stages": 2, "layers": [1, 3, 1, 3]})"));
  const std::string flag = "--pipeline-model-parallel-layout ";
  const std::pair<std::string, const char*> wrong[] = {
      {flag + "'Et|tt|L'", "the number of parts, 3, is no multiple of the 2 stages"},
      {flag + "'E(t|L'", "'(' without ')'"},
      {flag + "'Et)|L'", "')' without '('"},
      {flag + "'Et*|L'", "'*' without a number"},
      {flag + "'Et*99999|L'", "without a number of times"},
      {flag + "'((((((t*4000)*4000)*4000)*4000)*4000)*4000)'", "too many layers"},
      {flag + "'Etx|L'", "'x' is none of E, t, m, L and |"},
      {flag + "'Et|tmL'", "predict further"},
      {"--decoder-first-pipeline-num-layers 9", "leaves -1 layers for 1 stages"}};
  for (const auto& [layout, words] : wrong) {
    const std::string text =
        refusal_of_settings(std::string(kModel) + "--pipeline-model-parallel-size 2 " + layout);
    EXPECT_TRUE(contains(text, words)) << layout << ": " << text;
  }
}

// FP8 is scaled with a delay unless another recipe is named.
TEST(Megatron, Fp8) {
  const std::string flags = std::string(kModel) +
                            "--bf16 --use-distributed-optimizer --fp8-format hybrid "
                            "--fp8-param-gather --fp8-amax-history-len 1024 ";
  const Settings delayed = settings_of(flags);
  EXPECT_EQ(delayed.workload["delayed_scaling"], true);
  EXPECT_EQ(delayed.strategy["config"],
            Json::parse(R"({"use-distributed-optimizer": true, "fp8-format": "hybrid",
                            "fp8-param-gather": true})"));
  EXPECT_EQ(delayed.workload["operators"]["dtype"], "fp8");
  EXPECT_TRUE(assumes(settings_of(flags + "--fp4-format e2m1 "), "products in fp4 take the time"));
  EXPECT_FALSE(settings_of(flags + "--fp8-recipe blockwise").workload.contains("delayed_scaling"));
}

TEST(Megatron, ExpertsAndLatentAttention) {
  const Settings job = settings_of(
      "--num-layers 61 --hidden-size 7168 --ffn-hidden-size 18432 --num-attention-heads 128 "
      "--kv-channels 128 --multi-latent-attention --q-lora-rank 1536 --kv-lora-rank 512 "
      "--qk-head-dim 128 --qk-pos-emb-head-dim 64 --v-head-dim 128 --seq-length 4096 "
      "--num-experts 256 --moe-layer-freq '([0]*3+[1]*58)' --moe-ffn-hidden-size 2048 "
      "--moe-shared-expert-intermediate-size 2048 --moe-router-topk 8 --swiglu --qk-layernorm "
      "--untie-embeddings-and-output-weights --padded-vocab-size 129280 --bf16 "
      "--tensor-model-parallel-size 2 --expert-model-parallel-size 8");
  EXPECT_EQ(job.workload["name"], "deepseek_v3");
  EXPECT_EQ(job.workload["operators"]["shape"],
            Json::parse(R"({"layers": 61, "hidden": 7168, "heads": 128, "head_width": 128,
              "inner": 18432, "positions": 131072, "experts": 256, "experts_per_token": 8,
              "expert_inner": 2048, "shared_inner": 2048, "dense_layers": 3, "latent": 512,
              "rope_width": 64, "query_latent": 1536, "words": 129280})"));
  // Unless it is said, as many ranks share an expert as share a layer.
  EXPECT_EQ(job.workload["parallel"],
            Json::parse(R"({"tensor": 2, "expert": 8, "expert_tensor": 2})"));
  EXPECT_EQ(settings_of(std::string(kModel) + "--num-experts 8 --tensor-model-parallel-size 2 "
                                              "--expert-tensor-parallel-size 1")
                .workload["parallel"],
            Json::parse(R"({"tensor": 2})"));
}

// Without --swiglu, rope and the like the model is GPT-2's kind; defaults are Megatron's.
TEST(Megatron, DefaultsAreMegatrons) {
  const std::string sizes = "--num-layers 12 --hidden-size 768 --num-attention-heads 12 ";
  const Settings plain = settings_of(sizes + "--seq-length 1024 --tokenizer-type GPT2BPETokenizer");
  EXPECT_EQ(plain.workload["operators"],
            Json::parse(R"({"architecture": "gpt2", "dtype": "fp32", "sequence": 1024,
              "flash_attention": true,
              "shape": {"layers": 12, "hidden": 768, "heads": 12, "inner": 3072,
                        "positions": 1024, "words": 50304}})"));
  // Two thirds of four times the width, in whole 64s; NullTokenizer adds a word.
  const Settings gated = settings_of(sizes +
                                     "--seq-length 64 --swiglu --tokenizer-type NullTokenizer "
                                     "--vocab-size 1280 --num-query-groups 4");
  const Json& shape = gated.workload["operators"]["shape"];
  EXPECT_EQ(shape["inner"], 2048);
  EXPECT_EQ(shape["words"], 1408);
  EXPECT_EQ(shape["tied"], true);
  EXPECT_FALSE(shape.contains("kv_heads"));  // only with --group-query-attention
}

// Gradients that are kept in bf16 are summed in bf16, without a word about the sum.
TEST(Megatron, MainGradientsAreSummedAsTheyAreKept) {
  const std::string sizes =
      "--num-layers 12 --hidden-size 768 --num-attention-heads 12 --seq-length 64 --vocab-size "
      "1280 ";
  const auto config = [&](const std::string& more) {
    return settings_of(sizes + more).strategy["config"];
  };
  EXPECT_EQ(config("--bf16 --use-precision-aware-optimizer --main-grads-dtype bf16"),
            Json::parse(R"({"grad-reduce-in-bf16": true})"));
  EXPECT_EQ(config("--bf16 --main-grads-dtype fp32"), Json::object());
  EXPECT_EQ(config("--main-grads-dtype bf16"), Json::object());
  EXPECT_TRUE(contains(refusal_of_settings(sizes + "--bf16 --main-grads-dtype bf16 "
                                                   "--accumulate-allreduce-grads-in-fp32"),
                       "does not go with"));
}

TEST(Megatron, YamlSaysTheSame) {
  const std::string yaml = R"(
language_model:
  num_layers: 8
  hidden_size: 256
  num_attention_heads: 8
  num_query_groups: 4
  ffn_hidden_size: 512
  add_bias_linear: False
  activation_func: swiglu
  normalization: RMSNorm
  num_moe_experts: null
model_parallel:
  tensor_model_parallel_size: 2
  pipeline_model_parallel_size: 2
  virtual_pipeline_model_parallel_size: 2
  overlap_p2p_comm: True
  sequence_parallel: True
  bf16: True
seq_length: 64
vocab_size: 1000
untie_embeddings_and_output_weights: True
position_embedding_type: rope
micro_batch_size: 1
global_batch_size: 32
rampup_batch_size: null
use_distributed_optimizer: True
overlap_grad_reduce: False
lr: 2.5e-4
)";
  const Settings by_yaml = of_file("job.yaml", yaml);
  const Settings by_flags =
      settings_of(std::string(kModel) +
                  "--group-query-attention --num-query-groups 4 --tensor-model-parallel-size 2 "
                  "--pipeline-model-parallel-size 2 --num-virtual-stages-per-pipeline-rank 2 "
                  "--sequence-parallel --micro-batch-size 1 --global-batch-size 32 "
                  "--use-distributed-optimizer");
  EXPECT_EQ(nlohmann::json(by_yaml.workload), nlohmann::json(by_flags.workload));
  EXPECT_EQ(by_yaml.strategy, by_flags.strategy);
  EXPECT_EQ(by_yaml.global_batch, 32);
  EXPECT_TRUE(by_yaml.assumed.empty()) << by_yaml.assumed.front();
}

TEST(Megatron, ContradictionsAreNamed) {
  const std::string model = kModel;
  const std::pair<const char*, const char*> whole[] = {
      {"--tensor-model-parallel-size four",
       "tensor-model-parallel-size: found 'four', expected a whole number from 1 to 1048576"},
      {"--tensor-model-parallel-size $TP",
       "tensor-model-parallel-size: is $TP, a variable that is set elsewhere: write its value"},
      {"--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 3",
       "num-layers-per-virtual-pipeline-stage: 8 layers are no multiple of 2 stages x 3"},
      {"--tensor-model-parallel-size 2 --tp-comm-overlap",
       "tp-comm-overlap: can happen only with sequence-parallel"}};
  for (const auto& [flags, what] : whole) {
    EXPECT_EQ(refusal_of_settings(model + flags), std::string("the flags: ") + what);
  }
  const std::pair<std::string, const char*> parts[] = {
      {model + "--tensor-model-parallel-size 0", "found 0"},
      {model + "--pipeline-model-parallel-size 1e99", "pipeline-model-parallel"},
      {model + "--num-experts 8 --moe-layer-freq [1,0,1,0,1,0,1,0]",
       "only layers without experts before all others"},
      {model + "--num-experts 8 --moe-layer-freq [0]*999999999+[1]*1", "only"},
      {"--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 8",
       "vocab-size: is missing"},
      {"--num-layers 2 --hidden-size 64 --seq-length 8", "num-attention-heads"},
      {model + "--recompute-granularity all", "expected full or selective"}};
  for (const auto& [flags, part] : parts) {
    EXPECT_TRUE(contains(refusal_of_settings(flags), part)) << flags;
  }
  EXPECT_EQ(refusal_of_file("model.safetensors", "\xff --num-layers 2"), "none");
  EXPECT_TRUE(contains(refusal_of_file("other.yaml", "a: 1"),
                       "other.yaml: no settings of Megatron's, accelerate's or the Trainer's"));
  // One word is a weak mark.
  EXPECT_TRUE(contains(refusal_of_file("other.yaml", "num_layers: 2\nmicro_batch_size: 1\nbase: x"),
                       "syncline init MODEL --zero 2"));
  EXPECT_EQ(refusal_of_settings("--foo 1 --bar"), "none");
  EXPECT_EQ(refusal_of_settings("llama3_70b"), "none");
}

// A flag changes nothing, is left out aloud, is refused, or is not known: by its whole name.
TEST(Megatron, NoFlagIsSilentByItsBeginning) {
  const std::string model = kModel;
  std::string silent;
  for (const char* begin : {"overlap-", "use-", "data-parallel-", "checkpoint-", "enable-", "no-",
                            "moe-", "fp8-", "nccl-", "optimizer-", "attention-", "distributed-",
                            "cross-entropy-", "lr-", "save-", "log-", "te-"}) {
    const std::string name = std::string(begin) + "something";
    if (!assumes(settings_of(model + "--" + name + " 1"), "--" + name)) silent += name + " ";
  }
  EXPECT_EQ(silent, "");
  for (const char* flag :
       {"--use-custom-fsdp", "--use-megatron-fsdp", "--use-torch-fsdp2", "--moe-extended-tp",
        "--data-parallel-sharding-strategy optim_grads_params", "--batch-size 4",
        "--encoder-num-layers 4", "--is-hybrid-model"}) {
    EXPECT_FALSE(refusal_of_settings(model + flag).empty()) << flag;
  }
  EXPECT_EQ(refusal_of_settings(model + "--data-parallel-sharding-strategy no_shard --hidden-size "
                                        "256 --use-custom-fsdp=false"),
            "");
  for (const char* flag : {"--enable-cuda-graph", "--cuda-graph-impl local", "--use-sharp",
                           "--attention-backend unfused", "--no-gradient-accumulation-fusion"}) {
    const std::string name = std::string(flag).substr(0, std::string(flag).find(' '));
    EXPECT_TRUE(assumes(settings_of(model + flag), "left out: " + name)) << flag;
  }
  for (const char* flag :
       {"--lr 1e-4 --save /x --attention-backend flash --cuda-graph-impl none --seed 3",
        "--transformer-impl transformer_engine --no-load-optim --tokenizer-model a/b"}) {
    EXPECT_TRUE(settings_of(model + flag).assumed.empty()) << flag;
  }
}

TEST(Megatron, OlderNamesSayTheSame) {
  const std::string model = kModel;
  const auto same = [&](const std::string& older, const std::string& today) {
    const Settings one = settings_of(model + older), other = settings_of(model + today);
    EXPECT_EQ(nlohmann::json(one.workload), nlohmann::json(other.workload)) << older;
    EXPECT_EQ(one.strategy, other.strategy) << older;
  };
  same("--checkpoint-activations --checkpoint-num-layers 1", "--recompute-granularity full");
  same("--activations-checkpoint-method uniform", "--recompute-granularity full");
  same("--model-parallel-size 2", "--tensor-model-parallel-size 2");
  same("--fp8-hybrid", "--fp8-format hybrid");
  same("--pad-vocab-size-to 2048", "--padded-vocab-size 2048");
  // Gates other than --swiglu.
  const std::string plain =
      "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 8 --vocab-size 128 "
      "--normalization RMSNorm --bf16 ";
  EXPECT_FALSE(settings_of(plain).workload["operators"]["shape"]["gated"]);
  for (const char* gate : {"--quick-geglu", "--swiglu", "--glu-activation geglu"}) {
    EXPECT_FALSE(settings_of(plain + gate).workload["operators"]["shape"].contains("gated"))
        << gate;
  }
}

TEST(Megatron, ScriptsOfOtherModelsDescribeNone) {
  for (const char* script : {"pretrain_bert.py", "examples/pretrain_t5.py", "pretrain_mamba.py"}) {
    const Settings job = settings_of("torchrun " + std::string(script) + " " + kModel);
    EXPECT_FALSE(job.workload["operators"].contains("architecture")) << script;
    EXPECT_TRUE(contains(job.no_model, "no GPT")) << script;
  }
  EXPECT_EQ(settings_of(std::string("pretrain_gpt.py ") + kModel).no_model, "");
  const std::string line = "pretrain_bert.py " + std::string(kModel);
  EXPECT_TRUE(
      contains(test::input_error([&] { (void)init_scenario({.model = line, .node = "dgx-h100"}); }),
               "pretrain_bert.py trains BERT, no GPT: name the model before them"));
  // GPT's own script has a tokenizer where none is named.
  EXPECT_EQ(settings_of("pretrain_gpt.py --num-layers 3 --hidden-size 64 --num-attention-heads 4 "
                        "--seq-length 8 --fp16")
                .workload["operators"]["shape"]["words"],
            50304);
}

// Flags behind a script win over its own, and say what it does not.
TEST(Megatron, FlagsAfterAFileWin) {
  const test::Scratch scratch;
  const std::string file = scratch.path("run.sh");
  test::write_text(file,
                   "python pretrain.py --num-layers 2 --hidden-size 64 "
                   "--num-attention-heads 4 --seq-length 8 --tensor-model-parallel-size 4 "
                   "--global-batch-size 3 --tokenizer-type HuggingFaceTokenizer");
  const std::string more = "--vocab-size 1000 --tensor-model-parallel-size 2 --global-batch-size 8";
  for (const InitOptions& options :
       {InitOptions{.model = file, .node = "dgx-h100", .settings = more},
        InitOptions{.model = file, .node = "dgx-h100", .flags = more}}) {
    const Json workload = init_scenario(options).scenario["workload"];
    EXPECT_EQ(workload["parallel"], Json::parse(R"({"tensor": 2})"));
    EXPECT_EQ(workload["operators"]["shape"]["words"], 1024);
    EXPECT_EQ(workload["micro_batches"], 2);
  }
  const std::string json = scratch.path("ds.json");
  test::write_text(json, R"({"train_batch_size": 8})");
  EXPECT_TRUE(contains(test::input_error([&] { (void)read_settings(json, "--bf16"); }),
                       "go with Megatron's settings alone"));
}

// As Megatron-Bridge writes it beside a checkpoint: each section by its own rules.
constexpr const char* kBridge = R"(
ddp:
  _target_: megatron.bridge.training.config.DistributedDataParallelConfig
  average_in_collective: true
  bucket_size: 250000000
  data_parallel_sharding_strategy: no_shard
  grad_reduce_in_fp32: true
  overlap_grad_reduce: true
  overlap_param_gather: true
  use_distributed_optimizer: true
mixed_precision:
  bf16: true
  fp8: null
  grad_reduce_in_fp32: false
model:
  activation_func:
    _target_: torch.nn.functional.silu
  num_layers: 8
  hidden_size: 256
  num_attention_heads: 8
  num_query_groups: 4
  gated_linear_unit: true
  add_bias_linear: false
  normalization: RMSNorm
  position_embedding_type: rope
  seq_length: 64
  vocab_size: 1024
  tensor_model_parallel_size: 2
  overlap_param_gather: false
optimizer:
  overlap_param_gather: false
  optimizer: adam
tokenizer:
  tokenizer_type: NullTokenizer
  vocab_size: 77
train:
  global_batch_size: 64
  micro_batch_size: 2
  train_iters: 10
)";

// A recipe's override without a precision trains in bf16, and says so; null is fp32.
TEST(Megatron, BridgesRecipesAreInBf16) {
  const std::string text =
      "model: {num_layers: 2, hidden_size: 64, num_attention_heads: 4, seq_length: 8, vocab_size: "
      "128}\nddp: {use_distributed_optimizer: true}\ntrain: {micro_batch_size: 1}\n";
  const Settings job = of_file("run.yaml", text);
  EXPECT_EQ(job.workload["operators"]["dtype"], "bf16");
  EXPECT_TRUE(assumes(job, "mixed_precision bf16_mixed"));
  EXPECT_EQ(of_file("run.yaml", text + "mixed_precision: null\n").workload["operators"]["dtype"],
            "fp32");
}

TEST(Megatron, BridgesSectionsKeepTheirNames) {
  const Settings job = of_file("run_config.yaml", kBridge);
  EXPECT_EQ(job.framework, "Megatron-Bridge");
  EXPECT_EQ(job.strategy["config"],
            Json::parse(R"({"overlap-grad-reduce": true, "overlap-param-gather": true,
                            "use-distributed-optimizer": true, "ddp-bucket-size": 250000000,
                            "ddp-average-in-collective": true, "grad-reduce-in-bf16": true})"));
  EXPECT_EQ(job.workload["parallel"], Json::parse(R"({"tensor": 2})"));
  EXPECT_EQ(job.workload["batch"], 2);
  EXPECT_EQ(job.global_batch, 64);
  EXPECT_EQ(job.workload["operators"]["dtype"], "bf16");
  // Of the configuration's own defaults: embeddings are shared, and the width is four times.
  EXPECT_EQ(job.workload["operators"]["shape"],
            Json::parse(R"({"layers": 8, "hidden": 256, "heads": 8, "kv_heads": 4, "inner": 1024,
                            "positions": 131072, "tied": true, "words": 1024})"));
  EXPECT_TRUE(job.assumed.empty()) << job.assumed.front();
  const std::string text = kBridge;
  const auto with = [&](const char* line) { return refusal_of_file("a.yaml", text + line); };
  EXPECT_TRUE(contains(with("peft:\n  dim: 8\n"), "adapters alone"));
  EXPECT_TRUE(contains(with("dist:\n  use_megatron_fsdp: true\n"), "FSDP inside Megatron"));
  EXPECT_TRUE(assumes(of_file("a.yaml", text + "sections_to_come:\n  a: 1\n"),
                      "not known here: sections_to_come"));
}

TEST(Settings, OtherFrameworksAreRefusedByName) {
  const std::pair<const char*, const char*> files[] = {
      {"NeMo", "exp_manager:\n  name: x\nmodel:\n  num_layers: 2\n"},
      {"gpt-neox", "pipe_parallel_size: 4\nmodel_parallel_size: 2\nhidden_size: 44\n"},
      {"Lightning", "trainer:\n  accelerator: gpu\n"},
      {"verl", "actor_rollout_ref:\n  actor: {}\n"},
      {"OLMo", "global_train_batch_size: 512\nfsdp: {wrapping_strategy: by_block}\n"},
      {"Kubernetes", "apiVersion: v1\nkind: PyTorchJob\n"}};
  for (const auto& [name, text] : files) {
    const std::string said = refusal_of_file("a.yaml", text);
    EXPECT_TRUE(contains(said, name) && contains(said, "which are not read: ")) << said;
  }
  EXPECT_TRUE(contains(refusal_of_file("a.toml", "[trainer]\naccelerator = 'gpu'"), "Lightning"));
  EXPECT_TRUE(contains(refusal_of_file("a.sh", "torchrun -m torchtitan.train --job.config_file a"),
                       "a: no such file"));
  EXPECT_TRUE(contains(refusal_of_file("a.sh", "mkdir --parents a"), "no command is given flags"));
  EXPECT_EQ(refusal_of_file("a.toml", "[project]\nname = 'x'"),
            "a.toml: no settings of torchtitan's");
  EXPECT_TRUE(contains(refusal_of_file("t.py", "import mindspore as ms\n"), "mindspore"));
}

// Sharded states are summed at each parameter's owner after all passes; without shards fleet sums
// 128 MiB at a time.
TEST(LayoutTrainers, PaddleNlpsArguments) {
  const std::string common =
      R"({"model_name_or_path": "meta-llama/Llama-2-13b", "per_device_train_batch_size": 3,
          "gradient_accumulation_steps": 8, "tensor_parallel_degree": 4, "sequence_parallel": 1,
          "pipeline_parallel_degree": 2, "virtual_pp_degree": 5, "bf16": true,
          "fp16_opt_level": "O2", "max_seq_length": 2048, "recompute": true)";
  Settings job = of_file("a.json", common + R"(, "sharding": "stage1", "amp_master_grad": 1})");
  EXPECT_EQ(job.framework, "PaddleNLP");
  EXPECT_EQ(sorted(job.workload["parallel"]), parsed(R"({"tensor": 4, "pipeline": 2,
      "virtual_stages": 5, "sequence": true})"));
  EXPECT_EQ(job.workload["batch"], 3);
  EXPECT_EQ(job.micro_batches, 8);
  EXPECT_EQ(job.model, "llama2_13b");
  EXPECT_EQ(job.workload["operators"]["sequence"], 2048);
  EXPECT_EQ(job.workload["activation_checkpointing"], "full");
  EXPECT_FALSE(job.autocast);
  EXPECT_EQ(sorted(job.strategy), parsed(R"({"after_passes": true, "exchange": "sharded",
      "fusion": {"rule": "none", "cast": "fp32"}})"));
  job = of_file("a.json", common + "}");
  EXPECT_EQ(sorted(job.strategy),
            parsed(R"({"after_passes": true, "fusion": {"rule": "size", "size_mb": 128}})"));
  job = of_file("a.json", R"({"tensor_parallel_degree": 1, "sharding": "stage2", "fp16": true,
      "sharding_parallel_degree": 8, "max_length": 512})");
  EXPECT_EQ(job.strategy["hierarchy"]["group_size"], 8);
  EXPECT_EQ(job.strategy["each_micro_batch"], true);
  EXPECT_TRUE(job.autocast);
  EXPECT_FALSE(job.workload.contains("parallel"));
  job = settings_of("python run.py --tensor_parallel_degree 2 --bf16 1");
  EXPECT_EQ(job.framework, "PaddleNLP");
  EXPECT_EQ(job.workload["parallel"]["tensor"], 2);
  EXPECT_TRUE(
      contains(refusal_of_file("a.json", R"({"tensor_parallel_degree": 2, "do_ptq": true})"),
               "do_ptq: trains or quantises"));
}

const std::string kMindFormers = R"(
run_mode: finetune
runner_config: {batch_size: 2, gradient_accumulation_steps: 3}
parallel: {parallel_mode: 1, enable_parallel_optimizer: true,
           parallel_optimizer_config: {parallel_optimizer_threshold: 64}}
parallel_config: {data_parallel: 2, model_parallel: 4, pipeline_stage: 2, use_seq_parallel: true,
                  micro_batch_num: 16}
recompute_config: {recompute: [3, 3], select_recompute: false}
model:
  model_config: {type: LlamaConfig, seq_length: 2048, hidden_size: 8192, num_layers: 12,
                 num_heads: 64, n_kv_heads: 8, vocab_size: 32000, multiple_of: 256,
                 compute_dtype: bfloat16, param_init_type: float32}
)";

// Without a width a feed-forward layer has two thirds of four times the hidden size, as Code
// Llama's: 22016 for 8192.
TEST(LayoutTrainers, MindFormersYaml) {
  const Settings job = of_file("a.yaml", kMindFormers);
  EXPECT_EQ(job.framework, "MindFormers");
  EXPECT_EQ(job.ranks, 16);
  EXPECT_EQ(sorted(job.workload["parallel"]),
            parsed(R"({"tensor": 4, "pipeline": 2, "sequence": true})"));
  EXPECT_EQ(job.workload["batch"], 2);
  EXPECT_EQ(job.micro_batches, 16);
  EXPECT_EQ(sorted(job.workload["operators"]["shape"]),
            parsed(R"({"layers": 12, "hidden": 8192, "heads": 64, "kv_heads": 8,
      "inner": 22016, "positions": 2048, "words": 32000})"));
  EXPECT_EQ(job.workload["operators"]["dtype"], "bf16");
  EXPECT_TRUE(job.autocast);
  EXPECT_EQ(job.workload["activation_checkpointing"], "full");
  EXPECT_EQ(sorted(job.strategy), parsed(R"({"dialect": "mindspore", "config":
      {"parallel_mode": "semi_auto_parallel", "enable_parallel_optimizer": true,
       "parallel_optimizer_config": {"parallel_optimizer_threshold": 64}}})"));
  EXPECT_TRUE(test::any_contains(job.assumed,
                                 "computed again, where recompute_config does so with "
                                 "6 of 12"));
  std::string chosen = kMindFormers;
  chosen.replace(chosen.find("recompute: [3, 3], select_recompute: false"), 42,
                 "recompute: false, select_recompute: {mul: [2, 2]}");
  EXPECT_EQ(of_file("a.yaml", chosen).workload["activation_checkpointing"], "selective");
  std::string flat = kMindFormers;
  flat.replace(flat.find("pipeline_stage: 2"), 17, "pipeline_stage: 1");
  EXPECT_EQ(of_file("a.yaml", flat).micro_batches, 3);
  flat.replace(flat.find("LlamaConfig"), 11, "GLMConfig");
  EXPECT_TRUE(contains(of_file("a.yaml", flat + "trainer: {model_name: none_at_all}\n").no_model,
                       "'GLMConfig' of model.model_config is not read"));
  EXPECT_TRUE(contains(refusal_of_file("a.yaml", kMindFormers + "moe_config: {expert_num: 8}\n"),
                       "moe_config.expert_num"));
}

const std::string kAutomodel = R"(
step_scheduler: {global_batch_size: 64, local_batch_size: 2}
model: {_target_: nemo_automodel.NeMoAutoModelForCausalLM.from_pretrained,
        pretrained_model_name_or_path: meta-llama/Llama-3.1-8B, torch_dtype: bf16}
dataset: {seq_length: 2048}
)";

// The last layer stays gathered, as the root does; gradients are summed in the last micro-batch.
TEST(LayoutTrainers, AutomodelsYaml) {
  const Settings job = of_file("a.yaml", kAutomodel + R"(
distributed: {_target_: nemo_automodel.components.distributed.fsdp2.FSDP2Manager, dp_size: 4,
              tp_size: 2, cp_size: 1, sequence_parallel: true}
)");
  EXPECT_EQ(job.framework, "NeMo Automodel");
  EXPECT_EQ(job.ranks, 8);
  EXPECT_EQ(sorted(job.workload["parallel"]), parsed(R"({"tensor": 2, "sequence": true})"));
  EXPECT_EQ(job.workload["batch"], 2);
  EXPECT_EQ(job.global_batch, 64);
  EXPECT_EQ(job.workload["operators"]["architecture"], "llama3_8b");
  EXPECT_EQ(job.workload["operators"]["sequence"], 2048);
  EXPECT_FALSE(job.autocast);
  EXPECT_EQ(sorted(job.strategy), parsed(R"({"dialect": "fsdp", "config": {"version": 2,
      "units": "layers", "no_sync": true, "not_resharded": ["model.layers.31"],
      "mp_policy": {"param_dtype": "bfloat16", "reduce_dtype": "float32"}}})"));
  const auto strategy = [](const std::string& distributed) {
    return of_file("a.yaml", kAutomodel + "distributed: {" + distributed + "}\n").strategy;
  };
  EXPECT_EQ(strategy("strategy: ddp")["dialect"], "pytorch");
  EXPECT_EQ(sorted(strategy("strategy: fsdp2, dp_replicate_size: 2")["config"]["mesh"]),
            parsed("[2, -1]"));
  EXPECT_TRUE(contains(refusal_of_file("a.yaml", kAutomodel + "distributed: {strategy: "
                                                              "megatron_fsdp}\n"),
                       "'megatronfsdp' is not modelled: FSDP2 and DDP are"));
}

// Settings of an exchange are a strategy as they are; the model is named before them.
TEST(Settings, MayBeOnlyOfAStrategy) {
  const Settings run = settings_of(
      "horovodrun -np 16 -H a:4,b:4 --fusion-threshold-mb 32 --cycle-time-ms 3.5 "
      "--hierarchical-allreduce python train.py --batch-size 64");
  EXPECT_EQ(run.framework, "Horovod");
  EXPECT_EQ(run.strategy["config"], Json::parse(R"({"HOROVOD_FUSION_THRESHOLD": 33554432,
    "HOROVOD_CYCLE_TIME": 3.5, "HOROVOD_HIERARCHICAL_ALLREDUCE": 1})"));
  EXPECT_EQ(run.workload["batch"], 64);
  for (const auto& [dialect, text] :
       {std::pair{"paddle", R"({"fuse_grad_size_in_MB": 16, "nccl_comm_num": 1})"},
        {"mindspore", R"({"comm_fusion": {"allreduce": {"mode": "size", "config": 32}}})"},
        {"horovod", R"({"HOROVOD_CYCLE_TIME": 1})"},
        {"pytorch", R"({"bucket_cap_mb": 50})"}}) {
    const Settings job = of_file("exchange.json", text);
    EXPECT_EQ(job.strategy["dialect"], dialect);
    EXPECT_EQ(job.strategy["config"], Json::parse(text));
  }
}

// As save_to_prototxt of paddlepaddle 2.6.2 writes it.
TEST(Settings, ReadPaddlesPrototxt) {
  const Settings job = of_file("strategy.prototxt", R"(mode: COLLECTIVE
amp: true
recompute: true
lars: true
sync_nccl_allreduce: false
nccl_comm_num: 2
fuse_all_reduce_ops: true
fuse_grad_size_in_MB: 16
sharding: false
amp_configs {
  init_loss_scaling: 128.0
  custom_white_list: "conv2d"
  custom_white_list: "matmul"
}
build_strategy {
  fuse_elewise_add_act_ops: true  # a comment
}
)");
  EXPECT_EQ(job.framework, "Paddle");
  EXPECT_EQ(job.strategy["config"], Json::parse(R"({"amp": true, "sync_nccl_allreduce": false,
    "nccl_comm_num": 2, "fuse_all_reduce_ops": true, "fuse_grad_size_in_MB": 16,
    "amp_configs": {"init_loss_scaling": 128.0, "custom_white_list": ["conv2d", "matmul"]},
    "build_strategy": {"fuse_elewise_add_act_ops": true}})"));
  EXPECT_EQ(job.workload["activation_checkpointing"], "full");
  EXPECT_TRUE(assumes(job, "left out: lars"));
  const auto refused = [](const char* text) { return refusal_of_file("a.prototxt", text); };
  EXPECT_TRUE(contains(refused("dgc: true\nsharding: true\n"), "sharding: is not modelled"));
  EXPECT_EQ(refused("layer: 1\n"), "a.prototxt: no DistributedStrategy of Paddle's");
  for (const char* text : {"a {", "a", "a: {b: 1", "}", "a: 'x", "a: ,", "dgc: true }", "?"}) {
    EXPECT_TRUE(contains(refused(text), "line 1: no text of protobuf")) << text;
  }
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "a{";
  EXPECT_TRUE(contains(refused(deep.c_str()), "no text of protobuf"));
}

// comm_fusion by index in its older spelling, among what sets no exchange.
TEST(Settings, ReadMindSporesContext) {
  const auto read = [](const char* text) { return of_file("context.json", text); };
  const Settings older = read(R"({"parallel_mode": "data_parallel", "gradients_mean": true,
    "device_num": 16, "all_reduce_fusion_config": [85, 160], "search_mode": "x"})");
  EXPECT_EQ(older.strategy["config"], read(R"({"parallel_mode": "data_parallel", "comm_fusion":
                     {"allreduce": {"mode": "index", "config": [85, 160]}}})")
                                          .strategy["config"]);
  EXPECT_EQ(older.ranks, 16);
  EXPECT_TRUE(assumes(older, "left out: search_mode"));
  EXPECT_TRUE(contains(refusal_of_file("a.json", R"({"all_reduce_fusion_config": [1],
    "comm_fusion": {"allreduce": {"mode": "auto", "config": null}}})"),
                       "given twice, also as 'comm_fusion'"));
}

// Variables of NCCL that a scenario has keys for are taken, others that change a collective named.
TEST(Settings, NameNcclsVariables) {
  const Settings job =
      of_file("l.json", R"({"launches": [{"words": ["python", "t.py", "--micro-batch-size", "2"],
      "environment": {"NCCL_IB_DISABLE": "1", "NCCL_DEBUG": "INFO", "NCCL_ALGO": "Ring",
                      "NCCL_PROTO": "LL", "NCCL_P2P_DISABLE": "0"}}]})");
  EXPECT_TRUE(assumes(job, "sets NCCL_PROTO=LL ("));
  EXPECT_EQ(job.nccl,
            (std::map<std::string, std::string>{{"NCCL_ALGO", "Ring"}, {"NCCL_IB_DISABLE", "1"}}));
}

// The scenario of a launch on two nodes has the links that its variables leave.
TEST(Settings, NcclsVariablesChangeTheScenario) {
  const auto begun = [](const char* node, const std::string& variables) {
    const test::Scratch scratch;
    Json words{"torchrun", "pretrain_gpt.py", "--micro-batch-size", "1"};
    std::istringstream flags{std::string(kModel)};
    for (std::string word; flags >> word;) words.push_back(word);
    const Json launch{{"words", words}, {"environment", Json::parse("{" + variables + "}")}};
    test::write_text(scratch.path("l.json"), Json{{"launches", Json::array({launch})}}.dump());
    InitOptions options;
    options.model = scratch.path("l.json");
    options.node = node;
    options.nodes = 2;
    return init_scenario(options);
  };
  const Begun plain = begun("dgx-h100", "");
  EXPECT_FALSE(plain.scenario["cluster"].contains("nccl"));
  const Begun sockets = begun("dgx-h100", R"("NCCL_IB_DISABLE": "1")");
  const Scenario tcp = input::parse_scenario(input::document_of("s", sockets.scenario));
  EXPECT_EQ(tcp.cluster.fabric, Fabric::kTcp);
  EXPECT_DOUBLE_EQ(tcp.cluster.tiers.back().bandwidth, 12.5e9);
  EXPECT_TRUE(test::any_contains(sockets.assumed, "NCCL_IB_DISABLE=1"));
  // EFA is a plugin's.
  EXPECT_FALSE(
      begun("p5.48xlarge", R"("NCCL_IB_DISABLE": "1")").scenario["cluster"].contains("inter"));
  const Begun apart = begun("dgx-h100", R"("NCCL_P2P_DISABLE": "1", "NCCL_ALGO": "RING")");
  const Scenario shared = input::parse_scenario(input::document_of("s", apart.scenario));
  EXPECT_NEAR(shared.cluster.tiers.front().bandwidth, 5.5e9, 1e6);
  EXPECT_EQ(shared.cluster.nccl.nvlink, false);
  for (const Strategy& strategy : shared.strategies) EXPECT_EQ(strategy.algorithm, "ring");
  EXPECT_EQ(
      begun("dgx-h100", R"("NCCL_MAX_NCHANNELS": "2")").scenario["cluster"]["nccl"]["channels"], 2);
  EXPECT_FALSE(
      begun("dgx-h100", R"("NCCL_MAX_NCHANNELS": "32")").scenario["cluster"].contains("nccl"));
  EXPECT_FALSE(begun("workstation-4090", R"("NCCL_P2P_DISABLE": "1")")
                   .scenario["cluster"]
                   .contains("intra"));
}

// Megatron-DeepSpeed sums by DeepSpeed's engine.
TEST(Settings, MegatronDeepSpeedSumsByItsEngine) {
  const std::string flags =
      std::string(kModel) + "--micro-batch-size 1 --deepspeed --zero-stage 1 --deepspeed_config ";
  const Settings job = settings_of(flags + "nowhere.json");
  EXPECT_EQ(job.strategy["dialect"], "deepspeed");
  EXPECT_EQ(job.strategy["config"]["zero_optimization"]["stage"], 1);
  EXPECT_TRUE(assumes(job, "--deepspeed_config is not here"));
  const Settings captured = of_file(
      "l.json", R"({"launches": [{"words": ["deepspeed", "pretrain_gpt.py", "--num-layers", "2",
        "--hidden-size", "64", "--num-attention-heads", "4", "--seq-length", "8", "--vocab-size", "128",
        "--micro-batch-size", "1", "--bf16", "--deepspeed", "--deepspeed_config", "ds.json"],
        "files": {"ds.json": "{\"zero_optimization\": {\"stage\": 0}, \"bf16\": {\"enabled\": true}}"}}]})");
  EXPECT_EQ(captured.strategy["config"]["zero_optimization"]["stage"], 0);
  EXPECT_TRUE(assumes(captured, "BF16_Optimizer"));
}

TEST(Settings, GiveALaunchsProcesses) {
  const test::Scratch scratch;
  const std::string hosts = scratch.path("hostfile");
  test::write_text(hosts, "a slots=8\n# b slots=8\nc slots=4 # four\n");
  const std::string flags = " t.py --micro-batch-size 1 --tensor-model-parallel-size 2";
  for (const auto& [line, ranks] : std::vector<std::pair<std::string, int>>{
           {"torchrun --nproc_per_node=8 --nnodes 4", 32},
           {"torchrun --nproc-per-node 8 --nnodes=1:4", 0},
           {"python -m torch.distributed.launch --nproc_per_node 4", 4},
           {"deepspeed --num_gpus 8 --num_nodes 2", 16},
           {"deepspeed --hostfile=" + hosts, 12},
           {"deepspeed --hostfile " + hosts + " --include a@c:0", 0},
           {"python", 0}}) {
    EXPECT_EQ(settings_of(line + flags).ranks, ranks) << line;
  }
  EXPECT_EQ(settings_of("horovodrun -np 16 -H a:8,b:8 python t.py --batch-size 4").ranks, 16);
  const auto captured = [](const std::string& around, const std::string& variable) {
    return of_file("l.json",
                   R"({"launches": [{"words": ["python", "t.py", "--micro-batch-size", "2"],
      "around": [)" + around +
                       R"(], "environment": {)" + variable + "}}]}")
        .ranks;
  };
  EXPECT_EQ(captured(R"("mpirun", "-np", "64")", ""), 64);
  EXPECT_EQ(captured(R"("srun", "--ntasks=8")", ""), 8);
  EXPECT_EQ(captured(R"("srun", "-l")", R"("SLURM_NTASKS": "24")"), 24);
  EXPECT_EQ(
      init_scenario({.model = std::string(kModel) + "--micro-batch-size 1", .node = "dgx-h100"})
          .scenario["cluster"]["nodes"],
      1);
}

TEST(Torchtitan, TomlIsAJob) {
  const Settings job = of_file("train.toml", R"(
[model]
name = "llama3"
flavor = "70B"
[training]
local_batch_size = 16
seq_len = 8192
[parallelism]
data_parallel_replicate_degree = 2
data_parallel_shard_degree = 4
tensor_parallel_degree = 8
context_parallel_degree = 2
pipeline_parallel_degree = 2
pipeline_parallel_schedule = "Interleaved1F1B"
pipeline_parallel_microbatch_size = 2
enable_async_tensor_parallel = true
[activation_checkpoint]
mode = "full"
)");
  EXPECT_EQ(job.workload["parallel"],
            Json::parse(R"({"tensor": 8, "sequence": true, "context": 2, "pipeline": 2,
                            "virtual_stages": 2})"));
  EXPECT_EQ(job.workload["operators"]["architecture"], "llama3_70b");
  EXPECT_EQ(job.workload["activation_checkpointing"], "full");
  EXPECT_EQ(job.workload["batch"], 2);
  EXPECT_EQ(job.micro_batches, 8);
  // Shards lie among the ranks of the sequence too; behind a pipeline nothing is resharded.
  EXPECT_EQ(job.strategy["config"], Json::parse(R"({"version": 2,
                            "units": [["model.norm", "lm_head"], "model.layers.*",
                                      "model.embed_tokens"],
                            "reshard_after_forward": false, "mesh": [2, 8],
                            "mp_policy": {"param_dtype": "bfloat16",
                                          "reduce_dtype": "float32"}})"));
  EXPECT_TRUE(assumes(job, "enable_async_tensor_parallel"));
}

// Names of models that are known by their sizes alone, older names, and micro-batches of a branch.
TEST(Torchtitan, ModelsByTheirNamesAndOlderKeys) {
  const Settings job = of_file("a.toml",
                               "[model]\nname = 'qwen3'\nflavor = '8B'\n[training]\n"
                               "batch_size = 2\ngradient_accumulation_steps = 8\n"
                               "data_parallel_degree = 4\n");
  EXPECT_EQ(job.model, "qwen3_8b");
  EXPECT_EQ(job.micro_batches, 8);
  EXPECT_EQ(job.strategy["config"]["mesh"], Json::parse("[4]"));
  EXPECT_EQ(job.strategy["config"]["not_resharded"], Json::parse(R"(["model.layers.35"])"));
  EXPECT_EQ(of_file("a.toml", "[model]\nname = 'llama3'\nflavor = '405B'\n")
                .workload["operators"]["architecture"],
            "llama3.1_405b");
  const Settings other =
      of_file("a.toml", "[model]\nname = 'kimi'\nflavor = '1T'\n[training]\nbatch_size = 1\n");
  EXPECT_TRUE(contains(other.no_model, "'kimi_1T'")) << other.no_model;
  EXPECT_TRUE(
      contains(refusal_of_file("a.toml",
                               "[model]\nname = 'llama3'\n[training]\nglobal_batch_size = 8\n"
                               "gradient_accumulation_steps = 8\nbatch_size = 1\n"),
               "does not go with training.global_batch_size"));
}

TEST(Torchtitan, SelectiveRecomputationIsEverySecondLayer) {
  const std::string model = "[model]\nname = 'llama3'\nflavor = '8B'\n[activation_checkpoint]\n";
  const auto workload = [&](const char* more) { return of_file("a.toml", model + more).workload; };
  for (const char* second : {"", "mode = 'selective'\n", "selective_ac_option = '2'\n"}) {
    EXPECT_EQ(workload(second)["activation_checkpointing"], "full") << second;
    EXPECT_EQ(workload(second)["checkpointing_every"], 2) << second;
  }
  EXPECT_EQ(workload("selective_ac_option = '3'")["checkpointing_every"], 3);
  for (const char* each : {"selective_ac_option = '1'\n", "mode = 'full'\n"}) {
    EXPECT_EQ(workload(each)["activation_checkpointing"], "full") << each;
    EXPECT_FALSE(workload(each).contains("checkpointing_every")) << each;
  }
  EXPECT_FALSE(workload("mode = 'none'").contains("activation_checkpointing"));
  const Settings by_operator = of_file("a.toml", model + "selective_ac_option = 'op'");
  EXPECT_EQ(by_operator.workload["activation_checkpointing"], "products");
  EXPECT_FALSE(assumes(by_operator, "selective_ac_option"));
  EXPECT_TRUE(contains(refusal_of_file("a.toml", model + "selective_ac_option = 'two'"),
                       "found 'two', expected op, or a number of layers"));
}

// In older versions a pipeline has a micro-batch per rank, in newer ones micro-batches of a sample.
TEST(Torchtitan, MicroBatchesFollowTheVersion) {
  const std::string model = "[model]\nname = 'llama3'\nflavor = '8B'\n[training]\n";
  const Settings older = of_file("a.toml", model +
                                               "batch_size = 32\n[experimental]\n"
                                               "pipeline_parallel_degree = 8\n");
  EXPECT_EQ(older.workload["batch"], 4);
  EXPECT_EQ(older.micro_batches, 8);
  const Settings counted =
      of_file("a.toml", model +
                            "batch_size = 32\n[parallelism]\npipeline_parallel_degree = 8\n"
                            "pipeline_parallel_microbatches = 16\n");
  EXPECT_EQ(counted.workload["batch"], 2);
  EXPECT_EQ(counted.micro_batches, 16);
  EXPECT_FALSE(assumes(counted, "microbatches"));
  const Settings newer = of_file("a.toml", model +
                                               "local_batch_size = 32\n[parallelism]\n"
                                               "pipeline_parallel_degree = 8\n");
  EXPECT_EQ(newer.workload["batch"], 1);
  EXPECT_EQ(newer.micro_batches, 32);
}

// The norm and the head are one unit, which stays gathered unless "always" is said; in 0.1 they are
// the root's, and the last layer stays.
TEST(Torchtitan, UnitsFollowTheVersion) {
  const std::string model = "[model]\nname = 'llama3'\nflavor = '8B'\n";
  const auto config = [&](const std::string& more) {
    return of_file("a.toml", model + more).strategy["config"];
  };
  const Json newer = Json::parse(R"([["model.norm", "lm_head"], "model.layers.*",
                                     "model.embed_tokens"])");
  EXPECT_EQ(config("hf_assets_path = './a'\n")["units"], newer);
  EXPECT_EQ(config("hf_assets_path = './a'\n")["not_resharded"], Json{"model.norm"});
  EXPECT_TRUE(assumes(of_file("a.toml", model), "torchtitan 0.2 or later"));
  EXPECT_FALSE(assumes(of_file("a.toml", model + "hf_assets_path = './a'\n"), "torchtitan 0.2"));
  const Json always = config("[parallelism]\nfsdp_reshard_after_forward = 'always'\n");
  EXPECT_EQ(always["units"], newer);
  EXPECT_FALSE(always.contains("not_resharded"));
  // Each unit is told its value, the root none (distributed/fsdp.py), so that it stays.
  EXPECT_FALSE(always.contains("reshard_after_forward"));
  const Json older = config("tokenizer_path = './a'\n");
  EXPECT_EQ(older["units"], Json{"model.layers.*"});
  EXPECT_EQ(older["not_resharded"], Json{"model.layers.31"});
}

// The lists are of torchtitan's own JobConfig. Keys that change a step are named, others are
// ignored, and a key that no version has is refused with its neighbour.
TEST(Torchtitan, KeysAreNotedByTheirMarks) {
  const Settings job = of_file("a.toml",
                               "[model]\nname = 'llama3'\nflavor = '8B'\nconverters = ['float8']\n"
                               "[training]\nlocal_batch_size = 2\nmax_norm = 1.0\n"
                               "data_parallel_shard_degree = 8\ndtype = 'float32'\n"
                               "[parallelism]\ntensor_paralel_degree = 2\n"
                               "[compile]\nenable = true\n[own]\nkey = 1\n");
  EXPECT_TRUE(assumes(job, "what is left out: model.converters"));
  EXPECT_TRUE(job.compiled);
  EXPECT_TRUE(assumes(job,
                      "nothing of parallelism.tensor_paralel_degree, which is not known (did "
                      "you mean 'tensor_parallel_degree'?)"));
  for (const char* passed : {"max_norm", "shard_degree", "dtype", "own.key"}) {
    EXPECT_FALSE(assumes(job, passed)) << passed;
  }
}

// 80 layers with embedding and head are 82: in stages of 11 eight, two a rank of four.
TEST(Torchtitan, StagesFollowTheirLayers) {
  const std::string model =
      "[model]\nname = 'llama3'\nflavor = '70B'\n[parallelism]\npipeline_parallel_degree = 4\n";
  const auto job = [&](const char* more) { return refusal_of_file("a.toml", model + more); };
  EXPECT_EQ(of_file("a.toml", model + "pipeline_parallel_layers_per_stage = 11\n"
                                      "pipeline_parallel_schedule = 'Interleaved1F1B'")
                .workload["parallel"]["virtual_stages"],
            2);
  EXPECT_TRUE(contains(job("pipeline_parallel_layers_per_stage = 12"), "no multiple of 4 ranks"));
  EXPECT_TRUE(contains(job("pipeline_parallel_schedule = 'ZBVZeroBubble'"), "not modelled yet"));
  EXPECT_TRUE(
      contains(job("pipeline_parallel_split_points = ['layers.4']"), "a layout by its layers"));
  EXPECT_EQ(job("tensor_parallel_degree = 'two'"),
            "a.toml: parallelism.tensor_parallel_degree: found 'two', expected a whole number from "
            "1 to 1048576");
  EXPECT_EQ(job("fsdp_reshard_after_forward = 'sometimes'"),
            "a.toml: parallelism.fsdp_reshard_after_forward: found 'sometimes', expected default, "
            "always or never");
}

TEST(DeepSpeed, JsonIsALayoutNextToAModel) {
  const std::string text = R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 2,
    "bf16": {"enabled": true}, "zero_optimization": {"stage": 1},
    "tensor_parallel": {"autotp_size": 4}, "sequence_parallel_size": "auto"})";
  const Settings job = of_file("ds.json", text);
  EXPECT_EQ(job.workload["parallel"], Json::parse(R"({"tensor": 4})"));
  EXPECT_EQ(job.workload["batch"], 2);
  EXPECT_EQ(job.global_batch, 64);
  EXPECT_EQ(job.strategy["config"],
            Json::parse(R"({"bf16": {"enabled": true}, "zero_optimization": {"stage": 1}})"));
  EXPECT_TRUE(contains(refusal_of_file("ds.json", R"({"train_batch_size": -1})"), "found -1"));
  EXPECT_EQ(refusal_of_file("ds.json", R"({"name": "else"})"), "none");
  EXPECT_EQ(refusal_of_file("ds.json", R"({"zero_optimization": )"), "none");
  const test::Scratch scratch;
  const std::string file = scratch.path("ds.json");
  test::write_text(file, text);
  const Begun begun =
      init_scenario({.model = "llama3_8b", .node = "dgx-h100", .nodes = 2, .settings = file});
  EXPECT_EQ(begun.scenario["workload"]["micro_batches"], 8);  // 64 / (2 x 16 / 4)
  EXPECT_EQ(begun.scenario["workload"]["operators"]["dtype"], "bf16");
}

// DeepSpeed passes over keys that it does not know, and a step's samples alone are one pass.
TEST(DeepSpeed, PassesOverUnknownKeys) {
  const test::Scratch scratch;
  const std::string file = scratch.path("ds.json");
  test::write_text(file, R"({"train_batch_size": 400, "bf16": {"enabled": true},
                            "zero_optimisation": {"stage": 3}, "lr-decay-style": "cosine"})");
  const auto begun = [&](int nodes) {
    return init_scenario(
        {.model = "resnet50", .node = "dgx-a100", .nodes = nodes, .settings = file});
  };
  const Begun one = begun(1);
  EXPECT_EQ(one.scenario["workload"]["batch"], 50);
  EXPECT_FALSE(one.scenario["workload"].contains("micro_batches"));
  EXPECT_TRUE(test::any_contains(one.assumed, "nothing of lr-decay-style, which DeepSpeed"));
  EXPECT_TRUE(test::any_contains(one.assumed, "did you mean 'zero_optimization'"));
  EXPECT_TRUE(contains(test::input_error([&] { static_cast<void>(begun(3)); }),
                       "400 samples is no multiple of 24"));
}

// A file of another program, named as DeepSpeed's, was a job without ZeRO.
TEST(DeepSpeed, AFileWithoutItsKeysIsRefused) {
  const test::Scratch scratch;
  const std::string file = scratch.path("ds.json");
  const auto begun = [&](const std::string& text) {
    test::write_text(file, text);
    return init_scenario({.model = "gpt2_small",
                          .node = "dgx-a100",
                          .settings = "torchrun --nproc_per_node 8 sft.py --bf16 True "
                                      "--per_device_train_batch_size 1 --deepspeed " +
                                      file});
  };
  EXPECT_TRUE(contains(
      test::input_error([&] { static_cast<void>(begun(R"({"workload": {}, "strategies": []})")); }),
      "DeepSpeed knows none of its keys: found workload"));
  EXPECT_EQ(begun(R"({"zero_optimization": {"stage": 3}, "note": 1})")
                .scenario["strategies"][0]["config"]["zero_optimization"]["stage"],
            3);
  EXPECT_NO_THROW(begun("{}"));
}

// A precision that is left to the trainer above is the device's, and said.
TEST(DeepSpeed, OpenPrecisionIsTheDevices) {
  const test::Scratch scratch;
  const auto begun = [&](const std::string& text, const char* node) {
    test::write_text(scratch.path("ds.json"), text);
    return init_scenario(
        {.model = "gpt2_small", .node = node, .settings = scratch.path("ds.json")});
  };
  const auto dtype = [](const Begun& one) {
    return one.scenario["workload"]["operators"]["dtype"];
  };
  for (const char* text :
       {R"({"bf16": {"enabled": "auto"}, "fp16": {"enabled": "auto"}, "train_batch_size": "auto"})",
        R"({"bf16": {"enabled": "auto"}, "fp16": {"enabled": false}, "train_batch_size": 64})",
        R"({"train_batch_size": "auto", "zero_optimization": {"stage": 2}})"}) {
    const Begun ampere = begun(text, "dgx-a100-80gb"), volta = begun(text, "dgx-1");
    EXPECT_EQ(dtype(ampere), "bf16") << text;
    EXPECT_EQ(dtype(volta), "fp16") << text;
    EXPECT_TRUE(test::any_contains(ampere.assumed, "the device's usual precision")) << text;
    EXPECT_TRUE(test::any_contains(ampere.assumed, "gradients in bf16")) << text;
  }
  const Begun plain = begun(R"({"zero_optimization": {"stage": 1}})", "dgx-a100-80gb");
  EXPECT_EQ(dtype(plain), "fp32");
  EXPECT_TRUE(test::any_contains(plain.assumed, "in fp32, as neither bf16 nor fp16"));
  EXPECT_EQ(dtype(begun(R"({"train_batch_size": "auto", "fp16": {"enabled": true},
                            "bf16": {"enabled": "auto"}})",
                        "dgx-a100-80gb")),
            "fp16");
  const Begun cast =
      begun(R"({"train_batch_size": 64, "torch_autocast": {"enabled": true}})", "dgx-a100-80gb");
  EXPECT_EQ(dtype(cast), "bf16");
  EXPECT_EQ(cast.scenario["workload"]["operators"]["autocast"], true);
}

// The Trainer's own numbers, by the model's hidden size of 4096.
TEST(DeepSpeed, AutoSizesAreTheTrainers) {
  const test::Scratch scratch;
  test::write_text(scratch.path("ds.json"),
                   R"({"train_batch_size": "auto", "_comment": "x", "zero_optimization":
                       {"stage": 3, "overlap_comm": "auto", "reduce_bucket_size": "auto",
                        "stage3_prefetch_bucket_size": "auto",
                        "stage3_param_persistence_threshold": "auto"}})");
  const Begun begun = init_scenario(
      {.model = "llama3_8b", .node = "dgx-h100", .settings = scratch.path("ds.json")});
  const Json& zero = begun.scenario["strategies"][0]["config"]["zero_optimization"];
  EXPECT_EQ(zero["reduce_bucket_size"], 16777216);
  EXPECT_EQ(zero["stage3_prefetch_bucket_size"], 15099494);
  EXPECT_EQ(zero["stage3_param_persistence_threshold"], 40960);
  EXPECT_TRUE(test::any_contains(begun.assumed, "by the hidden size 4096"));
  (void)test::scenario_in(begun.scenario);
}

// Scenario, written, of flags on DGX H100.
struct Taken {
  Scenario scenario;
  Json flags;
};

Taken taken(const std::string& line, int nodes) {
  const Begun begun = init_scenario({.model = line, .node = "dgx-h100", .nodes = nodes});
  Taken taken{test::scenario_in(begun.scenario), {}};
  const Strategy& own = taken.scenario.strategies.front();
  const auto written = dialect::write_config(*dialect::find_dialect("megatron"), own,
                                             taken.scenario.workload, taken.scenario.cluster);
  EXPECT_TRUE(written && written->exact) << line << ": " << (written ? written->difference : "");
  if (written) taken.flags = written->config;
  return taken;
}

std::string line_of(const Json& flags) {
  return dialect::config_text(*dialect::find_dialect("megatron"), flags);
}

Json random_layout(std::mt19937& random) {
  const auto of = [&](std::initializer_list<int> list) {
    return *(list.begin() + static_cast<std::ptrdiff_t>(random() % list.size()));
  };
  Json flags;
  const auto set = [&](const char* flag, int size) {
    if (size > 1) flags[flag] = size;
  };
  const int pipeline = of({1, 2, 4}), tensor = of({1, 2, 4}), chunks = of({1, 2});
  set("tensor-model-parallel-size", tensor);
  set("pipeline-model-parallel-size", pipeline);
  set("num-virtual-stages-per-pipeline-rank", pipeline > 1 ? chunks : 1);
  set("context-parallel-size", of({1, 1, 2}));
  if (flags.contains("context-parallel-size") && of({0, 1}) == 1) flags["cp-comm-type"] = "a2a";
  if (of({0, 1}) == 1) {
    flags["num-experts"] = 8;
    set("expert-model-parallel-size", of({1, 2, 4, 8}));
    if (flags.contains("expert-model-parallel-size") && of({0, 1}) == 1) {
      flags["overlap-moe-expert-parallel-comm"] = true;
    }
    if (of({0, 1}) == 1 && tensor > 1) flags["expert-tensor-parallel-size"] = 1;
  }
  if (pipeline == 2 && chunks == 1 && of({0, 1}) == 1) {
    flags["pipeline-model-parallel-layout"] = "Ettt|tttttL";
  }
  if (tensor > 1 && of({0, 1}) == 1) flags["sequence-parallel"] = true;
  if (flags.contains("sequence-parallel") && of({0, 1}) == 1) flags["tp-comm-overlap"] = true;
  if (pipeline > 1 && chunks > 1 && of({0, 1}) == 1) flags["no-overlap-p2p-communication"] = true;
  flags["micro-batch-size"] = of({1, 2});
  flags["global-batch-size"] = 2 * 64 * of({1, 2});
  if (of({0, 1}) == 1) flags["overlap-grad-reduce"] = true;
  if (of({0, 1}) == 1) flags["use-distributed-optimizer"] = true;
  if (of({0, 1}) == 1) flags["ddp-bucket-size"] = 100000 * of({1, 3, 9});
  if (of({0, 1}) == 1) flags["grad-reduce-in-bf16"] = true;
  if (flags.contains("overlap-grad-reduce") && flags.contains("use-distributed-optimizer") &&
      of({0, 1}) == 1) {
    flags["overlap-param-gather"] = true;
  }
  if (of({0, 1}) == 1) flags["fp8-format"] = "hybrid";
  if (flags.contains("fp8-format") && flags.contains("use-distributed-optimizer") &&
      of({0, 1}) == 1) {
    flags["fp8-param-gather"] = true;
  }
  return flags;
}

// Flags become a scenario, the scenario flags; those say the same layout, and the same scenario.
TEST(Megatron, LayoutsComeBack) {
  std::mt19937 random(37);
  int read = 0;
  for (int round = 0; round < 120; ++round) {
    const Json given = random_layout(random);
    const int nodes = 1 << random() % 3;
    const std::string line = kModel + line_of(given);
    Taken first;
    try {
      first = taken(line, nodes);
    } catch (const InputError&) {
      continue;  // these sizes do not go together
    }
    ++read;
    const std::string experts = given.contains("num-experts") ? " --num-experts 8 " : " ";
    const Taken again = taken(kModel + experts + line_of(first.flags), nodes);
    EXPECT_EQ(line_of(again.flags), line_of(first.flags)) << line;
    for (const auto& [flag, value] : given.items()) {
      const bool exchange = flag.starts_with("ddp-") || flag.starts_with("overlap-") ||
                            flag == "use-distributed-optimizer" || flag == "num-experts" ||
                            flag == "expert-tensor-parallel-size";
      if (exchange) continue;
      ASSERT_TRUE(first.flags.contains(flag)) << flag << " of " << line;
      EXPECT_EQ(first.flags[flag], value) << flag << " of " << line;
    }
    const Workload &one = first.scenario.workload, &other = again.scenario.workload;
    EXPECT_EQ(one.parallel.expert_tensor, other.parallel.expert_tensor) << line;
    EXPECT_EQ(one.micro_batches, other.micro_batches) << line;
    EXPECT_EQ(
        dialect::plan_difference(
            plan::make_plan(one, first.scenario.cluster, first.scenario.strategies.front()),
            plan::make_plan(other, again.scenario.cluster, again.scenario.strategies.front())),
        "")
        << line;
  }
  EXPECT_GT(read, 40);
}

TEST(Settings, ObjectsOfManyKeysAreRefused) {
  std::string flow = "{num-layers: 8", json = R"({"train_batch_size": 8)", flags = "--bf16", text;
  for (int i = 0; i < 6000; ++i) {
    const std::string name = "k" + std::to_string(i);
    flow += ", " + name + ": 1";
    json += ", \"" + name + "\": 1";
    flags += " --" + name + " 1";
    text += name + ": 1 ";
  }
  const std::string most = " keys, expected at most 5000";
  EXPECT_EQ(refusal_of_file("a.yaml", flow + "}"), "a.yaml: an object of 6001" + most);
  EXPECT_EQ(refusal_of_file("a.yaml", "a: {b: " + flow + "}}"), "a.yaml: an object of 6001" + most);
  EXPECT_EQ(refusal_of_file("a.json", json + "}"), "a.json: an object of 6001" + most);
  EXPECT_EQ(refusal_of_settings(flags), "more than 5000 flags in one command");
  EXPECT_NE(refusal_of_file("a.prototxt", text), "none");
}

TEST(Settings, FilesThatNameFilesAreCounted) {
  Json files = Json::object();
  for (int i = 0; i < 4; ++i) {
    const std::string next = std::to_string(i + 1) + ".json";
    files[std::to_string(i) + ".json"] = Json{{"all", std::vector(1000, next)}}.dump();
  }
  const Json launch{{"words", {"torchrun", "train.py", "0.json"}}, {"files", files}};
  EXPECT_EQ(refusal_of_file("launch.json", Json{{"launches", {launch}}}.dump()),
            "files of settings with more than 100000 values");
}

}  // namespace
}  // namespace syncline::job
