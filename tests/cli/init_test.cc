// `syncline init` writes what `run` and `tune` take as it is, and says what it assumed.
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/expect.h"
#include "tests/support/program.h"
#include "tests/support/scratch.h"

namespace syncline::cli {
namespace {

TEST(Init, WritesAScenarioThatRunsAndTunes) {
  const test::Scratch scratch;
  const std::string file = scratch.path("first.json");
  const std::string made =
      test::syncline_out({"init", "gpt2_small", "--node", "dgx-a100", "--nodes", "2", "-o", file});
  std::istringstream lines(made);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80u + file.size() * (line.find(file) != std::string::npos ? 2 : 0))
        << line;
  }
  EXPECT_TRUE(test::says(made, "Assumed:"));
  const std::string ran = test::syncline_out({"run", file, "--verbose"});
  EXPECT_TRUE(test::says(ran, "DDP's default", "cluster.node dgx-a100: links as rated"));
  const auto tuned = test::syncline_run({"tune", file});
  EXPECT_EQ(tuned.code, 0) << tuned.err;
}

// Without a file the scenario is all that stdout has.
TEST(Init, PrintsOnlyTheScenario) {
  const auto made = test::syncline_run({"init", "resnet50", "--node", "g4dn.12xlarge"});
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_TRUE(made.out.starts_with("{\n"));
  EXPECT_TRUE(made.out.ends_with("}\n"));
  EXPECT_TRUE(test::says(made.err, "Assumed:"));
}

// Megatron's flags behind --, the layout by options, and the flags back.
TEST(Init, FlagsAndOptionsAreALayout) {
  const test::Scratch scratch;
  const std::string file = scratch.path("job.json");
  const auto made = test::shell(
      "'" SYNCLINE_BINARY "' init gpt2_small --node dgx-h100 --nodes 2 --pp 4 -o '" + file +
      "' -- --tensor-model-parallel-size 2 --micro-batch-size 1 --global-batch-size 16 "
      "--seq-length 512 --bf16 --overlap-grad-reduce --use-distributed-optimizer");
  ASSERT_EQ(made.code, 0) << made.err;
  const std::string explained =
      test::syncline_out({"explain", file, "--strategy", "as configured"});
  EXPECT_TRUE(test::says(explained, "tensor parallelism", "bubble"));
  const std::string flags = test::syncline_out({"emit", file, "--dialect", "megatron", "--code"});
  EXPECT_EQ(flags,
            "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 4 --micro-batch-size 1 "
            "--global-batch-size 16 --use-distributed-optimizer "
            "--accumulate-allreduce-grads-in-fp32 --overlap-grad-reduce\n");
  EXPECT_TRUE(
      test::refused(test::syncline_run({"init", "gpt2_small", "--node", "dgx-h100", "--tp", "3"}),
                    "--tp: tensor 3 x context 1 x pipeline 1 is 3 ranks, which do not divide the "
                    "cluster's 8"));
  const auto tokens =
      test::syncline_run({"init", "gpt2_small", "--node", "dgx-h100", "--sequence", "1k"});
  EXPECT_TRUE(test::says(tokens.out, "\"sequence\": 1024"));
  EXPECT_TRUE(test::refused(
      test::syncline_run({"init", "gpt2_small", "--node", "dgx-h100", "--nodes", "1k"}),
      "--nodes: found 1k, expected a whole number from 1 to 100000"));
  // A shell's quotes are gone from what comes word by word, and are back in what is pasted.
  const auto uneven = test::syncline_run({"init", "gpt2_small", "--node", "dgx-h100", "-o", file,
                                          "--", "--pipeline-model-parallel-size", "2",
                                          "--pipeline-model-parallel-layout", "Et*5|(tt)*3,tL"});
  ASSERT_EQ(uneven.code, 0) << uneven.err;
  const auto pasted = test::syncline_run({"emit", file, "--dialect", "megatron", "--code"});
  EXPECT_TRUE(test::says(pasted.out, "--pipeline-model-parallel-layout 'Ettttt|tttttttL' "));
  EXPECT_EQ(test::syncline_run({"init", "gpt2_small", "a.sh", "b.sh", "--node", "dgx-h100"}).code,
            2);
}

// Flags behind a script are added to its own, with a model ahead of it or without.
TEST(Init, ReadsFlagsAfterAScript) {
  const test::Scratch scratch;
  const std::string script = scratch.path("run.sh"), file = scratch.path("job.json");
  test::write_text(script,
                   "torchrun --nproc_per_node 8 pretrain.py --tensor-model-parallel-size 4 "
                   "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 8 "
                   "--micro-batch-size 1 --bf16 --tokenizer-type HuggingFaceTokenizer\n");
  const auto emitted = [&](const std::string& words) {
    const auto made = test::shell("'" SYNCLINE_BINARY "' init " + words);
    EXPECT_EQ(made.code, 0) << made.err;
    return test::syncline_out({"emit", file, "--dialect", "megatron", "--code"});
  };
  const std::string out = " --node dgx-h100 -o '" + file + "' -- ";
  const std::string two = "--tensor-model-parallel-size 2";
  EXPECT_TRUE(test::says(emitted("'" + script + "'" + out + two + " --vocab-size 1000"), two));
  EXPECT_TRUE(
      test::says(emitted("gpt2_small '" + script + "'" + out + two + " --vocab-size 1000"), two));
  EXPECT_TRUE(test::says(emitted(out +
                                 "torchrun pretrain_gpt.py --num-layers 2 --hidden-size 64 "
                                 "--num-attention-heads 4 --seq-length 8 --micro-batch-size "
                                 "1 --bf16 " +
                                 two),
                         two));
}

// What would have no effect is refused, and nothing is written.
TEST(Init, RefusesWhatItWouldPassOver) {
  // Two GPUs of a device that has no name here.
  std::string pair_text =
      test::text_of(SYNCLINE_SOURCE_DIR "/tests/fuzz/corpus/nccl_node/pair.xml");
  for (std::size_t at = 0; (at = pair_text.find("0x20b0", at)) != std::string::npos;) {
    pair_text.replace(at, 6, "0x9999");
  }
  const test::Scratch scratch;
  const std::string pair = scratch.path("pair.xml");
  test::write_text(pair, pair_text);
  for (const auto& [options, part] : std::vector<std::pair<std::vector<std::string>, const char*>>{
           {{"--node", "dgx-h100", "--gpus", "4"}, "--gpu"},
           {{"--node", "dgx-h100", "--net", "25gbit"}, "--gpu"},
           {{"--node", "dgx-h100", "--gpu", "h100-sxm"}, "init: remove --node, or --gpu"},
           {{"--node", pair}, "a100-sxm-80gb"},
           {{"--node", pair, "--gpu", "a100-sxm-80gb", "--gpus", "4"}, "--gpus"},
           {{"--node", "none.xml", "--gpu", "a100-sxm-80gb"}, "none.xml"},
           {{"--node", "dgx-h100", "--schedule", "zero_bubble"}, "without --pp of 2 or more"},
           {{"--node", "dgx-h100", "--sequence-parallel"}, "without --tp of 2 or more"},
           {{"--node", "dgx-h100", "--etp", "2"}, "without --ep of 2 or more"},
           {{"--node", "dgx-h100", "--nodes", "2", "--step", "4=8"},
            "expected a number of nodes of --step"},
           {{"--node", "dgx-h100", "--nodes", "8", "--step", "4=8"},
            "expected a number of nodes of --step"},
           {{"--node", "dgx-h100", "--step", "4=8", "--step", "4=9"}, "two for 4 nodes"}}) {
    const auto ran = test::syncline_run(test::joined({"init", "gpt2_small"}, options));
    EXPECT_TRUE(test::refused(ran, part));
    EXPECT_EQ(ran.out, "") << part;
  }
}

TEST(Init, WrongNamesWriteNothing) {
  const test::Scratch scratch;
  const std::string file = scratch.path("none.json");
  EXPECT_EQ(test::syncline_run({"init", "gpt2_smal", "--node", "dgx-a100", "-o", file}).code, 2);
  EXPECT_EQ(test::syncline_run({"init", "gpt2_small", "--node", "dgx", "-o", file}).code, 2);
  EXPECT_EQ(test::syncline_run({"init", "gpt2_small"}).code, 2);
  EXPECT_EQ(
      test::syncline_run({"init", "gpt2_small", "--node", "dgx-a100", "--dtype", "int8"}).code, 2);
  EXPECT_EQ(test::syncline_run({"run", file}).code, 2);
}

}  // namespace
}  // namespace syncline::cli
