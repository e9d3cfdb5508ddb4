#include "imports/format.h"

#include <gtest/gtest.h>

#include "tests/support/jobs.h"

namespace syncline::job {
namespace {

using test::contains;
using test::refusal_of_files;
using test::refusal_of_job;

TEST(ImportFormat, ForeignFilesAreRefusedByName) {
  const test::Scratch scratch;
  const std::string path = scratch.path("notes.txt");
  test::write_text(path, "what we did today");
  EXPECT_TRUE(refusal_of_job(path).starts_with("not a file that a job writes"));
  test::write_text(path, "");
  EXPECT_TRUE(refusal_of_job(path).starts_with("empty"));
  EXPECT_EQ(refusal_of_job(scratch.path("absent")), "no such file");
}

TEST(ImportFormat, SettingsOfAFrameworkAreForInit) {
  const test::Scratch scratch;
  const std::string path = scratch.path("train.sh");
  test::write_text(path,
                   "torchrun pretrain_gpt.py --num-layers 2 --hidden-size 64 "
                   "--num-attention-heads 4 --seq-length 64 --vocab-size 100\n");
  EXPECT_EQ(refusal_of_job(path), "settings of Megatron, which no job wrote: `syncline init " +
                                      path + " --node KIND --nodes N` makes a scenario of them");
}

TEST(ImportFormat, InspectorFilesAreReferredToCalibrate) {
  const test::Scratch scratch;
  const std::string path = scratch.path("alpha-pid7.log");
  test::write_text(path, R"({"header": {"id": "0x1"}, "metadata": {}, "coll_perf": {}})");
  EXPECT_EQ(refusal_of_job(path),
            "written by NCCL's Inspector: it tells what collectives took, no gradients; `syncline "
            "calibrate logs " +
                path + " -o cluster.json` makes a cluster of it");
  EXPECT_TRUE(contains(refusal_of_files({scratch.folder()}),
                       "syncline calibrate logs " + scratch.folder()));
}

TEST(ImportFormat, TheTypicalStepIsTheMedianOne) {
  Rank rank;
  for (const double gpu : {3.0, 1.0, 2.0, 9.0}) rank.steps.emplace_back().gpu = gpu;
  EXPECT_EQ(typical_step(rank).gpu, 2.0);
  rank.steps.resize(1);
  EXPECT_EQ(typical_step(rank).gpu, 3.0);
}

}  // namespace
}  // namespace syncline::job
