// Scripts that run with stand-ins for launchers: what was launched is written down, nothing trains.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "tests/support/expect.h"
#include "tests/support/program.h"
#include "tests/support/text.h"

namespace syncline::cli {
namespace {

using Words = std::vector<std::string>;

class Capture : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return scratch_.path(name); }
  const std::string& folder() const { return scratch_.folder(); }
  void write(const std::string& name, const std::string& text) const {
    test::write_text(path(name), text);
  }

  // `syncline capture` on a script, which runs in the folder with temporary files of its own.
  test::Ran ran(const std::string& script, const test::Variables& more = {}) const {
    write("run.sh", script);
    return in_folder("bash run.sh", more);
  }
  test::Ran in_folder(const std::string& command, const test::Variables& more = {}) const {
    std::filesystem::create_directories(path("tmp"));
    test::Variables environment{{"TMPDIR", path("tmp")}, {"CUDA_HOME", "/cuda"}};
    environment.insert(more.begin(), more.end());
    return test::Program(
               {"sh", "-c",
                "cd '" + folder() + "' && exec '" SYNCLINE_BINARY "' capture -- " + command},
               environment)
        .wait();
  }
  Json launches(const std::string& script) const {
    const test::Ran one = ran(script);
    EXPECT_EQ(one.code, 0) << script << one.err;
    return Json::parse(one.out, nullptr, false).value("launches", Json::array());
  }
  // Of the first launch.
  Words words(const std::string& script) const {
    const Json all = launches(script);
    return all.empty() ? Words{} : all[0]["words"].get<Words>();
  }

 private:
  const test::Scratch scratch_;
};

// One launch, in the forms in which people write it.
TEST_F(Capture, EveryFormOfALaunch) {
  const std::string all = "--num-layers 2 --seq-length 64 --bf16";
  const Words right{"pretrain_gpt.py", "--num-layers", "2", "--seq-length", "64", "--bf16"};
  for (const std::string& script : Words{
           "cmd=\"torchrun pretrain_gpt.py\n " + all + "\"\necho ${cmd}\neval ${cmd}",
           "CMD='pretrain_gpt.py " + all + " '\nsrun -l bash -c \"python -u $CMD \" 2>&1 | cat",
           "sbatch <<EOF\n#SBATCH -N 2\nsrun python pretrain_gpt.py " + all + "\nEOF",
           "train() {\n  python pretrain_gpt.py $2 --seq-length $1 --bf16\n}\n"
           "train 64 \"--num-layers 2\"",
           "A=(--num-layers $((4 / 2)))\nA+=(--seq-length $((S=0, 64)) --bf16)\n"
           "torchrun pretrain_gpt.py \"${A[@]}\"",
           "let L=32*2\npython3 pretrain_gpt.py --num-layers 2 --seq-length $L --bf16",
           "O=' --bf16'\nP=\"\\\n  --seq-length 64\"\n"
           "deepspeed pretrain_gpt.py --num-layers 2 $P$O",
           "for n in 2 4; do\n python pretrain_gpt.py --num-layers $n --seq-length 64 --bf16\ndone",
           "cat >f <<-'X'\n\t--seq-length 9\n\tX\nif true; then nohup torchrun pretrain_gpt.py " +
               all + " >log &\nfi",
           "torchrun pretrain_gpt.py --num-layers 2 `# a comment` --seq-length ${S:-${T:-64}} "
           "--bf16 \"$@\"",
           "N=7B\ncase $N in 13B) L=4 ;; 7?) L=2 ;; esac\n[ $N = 7B ] && M=64 || M=9\n"
           "mpirun -np 8 python pretrain_gpt.py --num-layers $L --seq-length $M --bf16",
           "set -euo pipefail\nLAYERS=$(python3 -c 'print(2)')\n"
           "python3 -m torch.distributed.run pretrain_gpt.py --num-layers $LAYERS --seq-length 64 "
           "--bf16"}) {
    const Words found = words(script);
    const auto begin = std::ranges::find(found, right.front());
    EXPECT_EQ(Words(begin, found.end()), right) << script;
  }
}

// Words in brackets stay whole, in every place of a command.
TEST_F(Capture, WordsInBracketsStayWhole) {
  const test::Ran one =
      in_folder("torchrun train.py '[0, 1]' '[]' '[x' --freq '[1]' '[[0,1],[2]]'");
  EXPECT_EQ(one.code, 0) << one.err;
  const Json all = Json::parse(one.out, nullptr, false).value("launches", Json::array());
  ASSERT_EQ(all.size(), 1U) << one.out;
  EXPECT_EQ(all[0]["words"],
            Json({"torchrun", "train.py", "[0, 1]", "[]", "[x", "--freq", "[1]", "[[0,1],[2]]"}));
}

// What stands around a launch, where it was started, what it heeds and the files that it names.
TEST_F(Capture, WritesDownWhatALauncherFinds) {
  write("zero.json", R"({"zero_optimization": {"stage": 2}})");
  write("fsdp.yaml",
        "distributed_type: DEEPSPEED\ndeepspeed_config:\n"
        "  deepspeed_config_file: inner/zero.json\n");
  std::filesystem::create_directories(path("inner"));
  write("inner/zero.json", R"({"zero_optimization": {"stage": 3}})");
  const Json all = launches(
      "export NCCL_ALGO=Ring HF_TOKEN=abc MASTER_ADDR=$(hostname)\n"
      "cat >made.json <<X\n{\"a\": 1}\nX\n"
      "srun -N 2 --ntasks-per-node 1 accelerate launch --config_file fsdp.yaml t.py "
      "--deepspeed=zero.json --data made.json --hub_token abc --x 'two words' ''\n"
      "rm made.json\n");
  ASSERT_EQ(all.size(), 1U);
  const Json& one = all[0];
  EXPECT_EQ(one["around"].get<Words>(), (Words{"srun", "-N", "2", "--ntasks-per-node", "1"}));
  EXPECT_EQ(
      one["words"].get<Words>(),
      (Words{"accelerate", "launch", "--config_file", "fsdp.yaml", "t.py", "--deepspeed=zero.json",
             "--data", "made.json", "--hub_token", "(left out)", "--x", "two words", ""}));
  EXPECT_EQ(one["environment"]["NCCL_ALGO"], "Ring");
  EXPECT_EQ(one["environment"]["CUDA_HOME"], "/cuda");
  EXPECT_FALSE(one["environment"].contains("HF_TOKEN"));
  EXPECT_EQ(one["files"]["made.json"], "{\"a\": 1}\n");
  EXPECT_EQ(one["files"]["zero.json"], R"({"zero_optimization": {"stage": 2}})");
  EXPECT_EQ(one["files"]["inner/zero.json"], R"({"zero_optimization": {"stage": 3}})");
  EXPECT_EQ(std::filesystem::canonical(one["folder"].get<std::string>()),
            std::filesystem::canonical(folder()));
}

// Settings that a launch names without their folder, and keys that it sets in them.
TEST_F(Capture, SettingsOfAFolder) {
  std::filesystem::create_directories(path("examples/conf"));
  std::filesystem::create_directories(path("configs"));
  write("examples/gpt_pretraining.py", "pass\n");
  write("examples/conf/gpt.yaml",
        "trainer: {devices: 1, precision: bf16}\nmodel: {num_layers: 2, hidden_size: 64, "
        "num_attention_heads: 4, encoder_seq_length: 8, vocab_size: 128, micro_batch_size: 1, "
        "megatron_amp_O2: true}\n");
  write("configs/small.yml",
        "{\"num_layers\": 2, \"hidden_size\": 64, \"num_attention_heads\": 4, \"seq_length\": 8, "
        "\"vocab_size\": 128, \"pos_emb\": \"rotary\", \"no_weight_tying\": true}");
  write("configs/setup.yml", "{\"train_micro_batch_size_per_gpu\": 3}");
  const auto workload = [&](const std::string& script, const std::string& number) {
    const test::Ran captured = ran(script);
    write("launch.json", captured.out);
    return Json::parse(test::syncline_out(
        {"init", path("launch.json"), "--node", "dgx-h100", "--launch", number}))["workload"];
  };
  const std::string script =
      "python examples/gpt_pretraining.py --config-path=conf --config-name=gpt "
      "trainer.devices=8 ++model.micro_batch_size=2 model.tensor_model_parallel_size=4\n"
      "python ./deepy.py train.py -d configs small.yml setup.yml\n";
  const Json nemo = workload(script, "1");
  EXPECT_EQ(nemo["batch"], 2);
  EXPECT_EQ(nemo["parallel"]["tensor"], 4);
  EXPECT_EQ(workload(script, "2")["batch"], 3);
}

// Python that trains nothing is the real one, also where a script puts another ahead of it.
TEST_F(Capture, HelpersReallyRun) {
  write("size.py", "import sys\nprint(2 * int(sys.argv[1]))\n");
  write("train.py", "open('trained', 'w')\n");
  write("main.py", "loss.backward()\n");
  std::filesystem::create_directories(path("env/bin"));
  write("env/bin/torchrun", "#!/bin/sh\ntouch trained\n");
  std::filesystem::permissions(path("env/bin/torchrun"), std::filesystem::perms::owner_all);
  const Json all = launches(
      "N=$(python size.py 4)\nexport PATH=$PWD/env/bin:$PATH\n"
      "run() { PATH=$PWD/env/bin:$PATH; torchrun --nproc-per-node $N $1; }\n"
      "run train.py\nL=\"$PWD/env/bin/torchrun --nnodes 2\"\n$L x.py\nset -x\npython main.py\n"
      "bash -lc 'PATH=/usr/bin; python train.py --lr 1'\necho '{}' | python -m json.tool\n"
      "touch done\n");
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[0]["words"].get<Words>(), (Words{"torchrun", "--nproc-per-node", "8", "train.py"}));
  EXPECT_EQ(all[1]["words"].get<Words>(), (Words{"torchrun", "--nnodes", "2", "x.py"}));
  EXPECT_EQ(all[2]["words"].get<Words>(), (Words{"python", "main.py"}));
  EXPECT_EQ(all[3]["words"].get<Words>(), (Words{"python", "train.py", "--lr", "1"}));
  EXPECT_FALSE(std::filesystem::exists(path("trained")));
  EXPECT_TRUE(std::filesystem::exists(path("done")));
}

// Outside of a job Slurm's variables are those of the script's own lines.
TEST_F(Capture, SlurmsVariables) {
  const std::string script =
      "#!/bin/bash\n#SBATCH --nodes=3\n#SBATCH --ntasks-per-node=2 # two\n"
      "#SBATCH --gres=gpu:h100:4\nset -eu\n"
      "HEAD=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)\n"
      "HERE=$(srun --nodes=1 -w $HEAD hostname)\n[ -n \"$HERE\" ]\n"
      "srun torchrun --nnodes $SLURM_NNODES --nproc-per-node $SLURM_GPUS_ON_NODE --master $HEAD "
      "t.py --world $((SLURM_NTASKS * 2)) --rank $SLURM_PROCID";
  EXPECT_EQ(words(script), (Words{"torchrun", "--nnodes", "3", "--nproc-per-node", "4", "--master",
                                  "node1", "t.py", "--world", "12", "--rank", "0"}));
}

// A script for a cluster ends on no command, limit or environment that only the cluster has. Under
// `set -e` a `cd` still ends it.
TEST_F(Capture, ClusterCommandsCountAsDone) {
  const test::Ran captured = ran(
      "set -euo pipefail\nmodule load cuda/12 nccl\nulimit -n 65536 1048576\n"
      "source /no/such/bin/activate\n. /no/such/env.sh\n"
      "GPUS=$(smi-of-no-machine -L | wc -l)\n"
      "srun bash -c 'numactl --membind=0-3 -N 0 torchrun --nproc_per_node 4 train.py --n $0' 7\n"
      "nsys profile -o out --trace=cuda,nvtx taskset -c 0-999 ./env/bin/python train.py --lr 1\n"
      "false\n[ -d nowhere ]\ncd /no/such/folder\ntorchrun never.py\n");
  ASSERT_EQ(captured.code, 0) << captured.err;
  EXPECT_TRUE(test::contains(captured.err, "lacks module, smi-of-no-machine")) << captured.err;
  const Json all = Json::parse(captured.out)["launches"];
  ASSERT_EQ(all.size(), 2U) << captured.out;
  EXPECT_EQ(all[0]["words"].get<Words>(),
            (Words{"torchrun", "--nproc_per_node", "4", "train.py", "--n", "7"}));
  EXPECT_EQ(all[0]["around"].get<Words>(), Words{"srun"});
  EXPECT_EQ(all[1]["words"].get<Words>(), (Words{"python", "train.py", "--lr", "1"}));
  EXPECT_FALSE(test::contains(captured.err, "syncline_before")) << captured.err;
  const test::Ran none = ran("module load cuda; exit 3");
  EXPECT_TRUE(test::contains(none.err, "this machine lacks module")) << none.err;
}

TEST_F(Capture, ScriptsOnAnotherPathArePythons) {
  const Json all = launches("set -e\npretrain_of_nobody.py --num-layers 2 --lr 1\n");
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0]["words"].get<Words>(),
            (Words{"python", "pretrain_of_nobody.py", "--num-layers", "2", "--lr", "1"}));
}

// GPUs are counted where there are none, and logs have a folder.
TEST_F(Capture, GpusAndLogsOfTheCluster) {
  const Json all = launches(
      "#!/bin/bash\n#SBATCH --gres=gpu:4\nset -e\nnvidia-smi\nL=logs/$((1 + 1))\n"
      "torchrun --nproc_per_node $(nvidia-smi -L | wc -l) t.py --lr 1 &>logs/a/t.log\n"
      "N=$(nvidia-smi --query-gpu=name --format=csv,noheader | wc -l)\n"
      "tune run --nproc_per_node $N lora_finetune_distributed --config a.yaml >> \"$L/t.log\"\n"
      "litgpt finetune_lora some/model --devices $N\n");
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0]["words"].get<Words>(),
            (Words{"torchrun", "--nproc_per_node", "4", "t.py", "--lr", "1"}));
  EXPECT_EQ(all[1]["words"].get<Words>(),
            (Words{"tune", "run", "--nproc_per_node", "4", "lora_finetune_distributed", "--config",
                   "a.yaml"}));
  EXPECT_EQ(all[2]["words"].get<Words>(),
            (Words{"litgpt", "finetune_lora", "some/model", "--devices", "4"}));
}

// Nothing that was there before is lost, no process is ended, nothing is fetched.
TEST_F(Capture, DestroyingCommandsDoNothing) {
  write("kept.txt", "old\n");
  std::filesystem::create_directories(path("out/checkpoint"));
  std::filesystem::last_write_time(
      path("kept.txt"), std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  const test::Ran captured = ran(
      "set -ex\nrm -rf out kept.txt\necho 1 >own.tmp\nrm own.tmp\n"
      "pkill -9 python || true\npip install -q torch\ngit -C . clone https://nowhere.invalid/x\n"
      "python3 -m pip install torch\n"
      "N=$(python -c 'import torch_of_nobody; print(torch_of_nobody.cuda.device_count())')\n"
      "torchrun --nproc_per_node $N train.py\n");
  ASSERT_EQ(captured.code, 0) << captured.err;
  EXPECT_TRUE(std::filesystem::exists(path("kept.txt")));
  EXPECT_TRUE(std::filesystem::exists(path("out/checkpoint")));
  EXPECT_FALSE(std::filesystem::exists(path("own.tmp")));
  EXPECT_TRUE(
      test::contains(captured.err, "held back: rm, pkill, pip, git, python3 -m pip, python -c"))
      << captured.err;
  EXPECT_FALSE(test::contains(captured.err, "syncline_before")) << captured.err;
  EXPECT_EQ(Json::parse(captured.out)["launches"][0]["words"].get<Words>(),
            (Words{"torchrun", "--nproc_per_node", "8", "train.py"}));
}

TEST_F(Capture, TellsWhatItDidNotSee) {
  for (const auto& [script, part] :
       {std::pair{"echo hello; exit 4", "ended with exit code 4 and launched no training"},
        {"true", "ended with exit code 0 and launched no training"}}) {
    const test::Ran none = ran(script);
    EXPECT_EQ(none.code, 2) << script;
    EXPECT_TRUE(test::contains(none.err, part)) << none.err;
    EXPECT_EQ(none.out, "");
  }
  const test::Ran ended = ran("set -e\ncd /no/such/folder\n");
  EXPECT_TRUE(test::contains(ended.err, "failed on this machine")) << ended.err;
  const test::Ran half = ran("torchrun a.py\nls nowhere\nexit 7\n");
  EXPECT_EQ(half.code, 0);
  EXPECT_TRUE(test::contains(half.err, "exit code 7")) << half.err;
  EXPECT_TRUE(test::contains(half.err, "really run."));
  EXPECT_TRUE(test::contains(in_folder("./nowhere.sh").err, "'./nowhere.sh' cannot be run"));
  const test::Ran endless = ran("while true; do torchrun a.py; done");
  EXPECT_EQ(Json::parse(endless.out, nullptr, false)["launches"].size(), 99U) << endless.err;
  EXPECT_TRUE(test::contains(endless.err, "no more are taken"));
  EXPECT_TRUE(std::filesystem::is_empty(path("tmp")));
}

// Ctrl-C ends the script, keeps what there is and leaves nothing behind.
TEST_F(Capture, CanBeInterrupted) {
  write("run.sh", "torchrun a.py\necho waiting >&2\nsleep 1000\n");
  std::filesystem::create_directories(path("tmp"));
  test::Program program(
      test::syncline_words({"capture", "-o", path("launch.json"), "--", "bash", path("run.sh")}),
      {{"TMPDIR", path("tmp")}});
  ASSERT_TRUE(program.says("waiting"));
  program.signal(SIGINT);
  const test::Ran ended = program.wait();
  EXPECT_EQ(ended.code, 130) << ended.err;
  EXPECT_EQ(Json::parse(test::text_of(path("launch.json")))["launches"].size(), 1U);
  EXPECT_TRUE(std::filesystem::is_empty(path("tmp")));
}

// The whole way: several launches, of which init reads the one that trains, or the one that is
// named.
TEST_F(Capture, BecomesAScenario) {
  write("ds.json", R"({"zero_optimization": {"stage": 2}, "bf16": {"enabled": true},
                       "train_micro_batch_size_per_gpu": "auto"})");
  write("run.sh",
        "TP=2\nfor tp in 1 $TP; do\n  torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 2 "
        "--hidden-size 64 --num-attention-heads 4 --seq-length 8 --vocab-size 128 --bf16 "
        "--micro-batch-size 1 --tensor-model-parallel-size $tp\ndone\n"
        "deepspeed sft.py --deepspeed ds.json --per_device_train_batch_size 3 --bf16 True "
        "--model_name_or_path openai-community/gpt2\n");
  const std::string file = path("launch.json");
  const test::Ran captured = in_folder("bash run.sh > '" + file + "'");
  ASSERT_EQ(captured.code, 0) << captured.err;
  EXPECT_TRUE(test::contains(captured.err, "  3  deepspeed sft.py --deepspeed ds.json"));
  std::filesystem::remove(path("ds.json"));  // its content was captured
  const auto made = [&](const Words& more) {
    return Json::parse(
        test::syncline_out(test::joined({"init", file, "--node", "dgx-h100"}, more)));
  };
  EXPECT_FALSE(made({})["workload"].contains("parallel"));
  EXPECT_EQ(made({"--launch", "2"})["workload"]["parallel"]["tensor"], 2);
  const Json third = made({"--launch", "3"});
  EXPECT_EQ(third["workload"]["batch"], 3);
  EXPECT_EQ(third["strategies"][0]["config"]["zero_optimization"]["stage"], 2);
  EXPECT_TRUE(test::refused(
      test::syncline_run({"init", file, "--node", "dgx-h100", "--launch", "4"}), "3 launches"));
  const test::Ran piped =
      test::shell("cat '" + file + "' | '" SYNCLINE_BINARY "' init - --node dgx-h100 --launch 3");
  EXPECT_EQ(piped.code, 0) << piped.err;
  EXPECT_TRUE(
      test::refused(test::syncline_run({"init", "--node", "dgx-h100", "--", "bash", "run.sh"}),
                    "syncline capture -o launch.json -- bash"));
}

}  // namespace
}  // namespace syncline::cli
