// `syncline record`: the file that it gives, and what real training jobs write with it. The jobs
// check what they recorded themselves (jobs.py); here the program reads it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/program.h"
#include "tests/support/text.h"
#include "tests/support/torch.h"

namespace syncline::record {
namespace {

using test::one_thread;
using test::python;
using test::torch_is_missing;

const std::string kScript = SYNCLINE_SOURCE_DIR "/pytorch/syncline_record.py";
const std::string kJobs = SYNCLINE_SOURCE_DIR "/tests/record/jobs.py";
const std::string kTrain = SYNCLINE_SOURCE_DIR "/tests/record/train.py";
constexpr int kSteps = 93;  // that a recording takes on CPUs, as docs/record.md has it

nlohmann::json answer(const std::vector<std::string>& arguments) {
  auto words = arguments;
  words.insert(words.end(), {"--format", "json"});
  const auto ran = test::syncline_run(words);
  EXPECT_EQ(ran.code, 0) << ran.err;
  return nlohmann::json::parse(ran.out, nullptr, false);
}

void expect_accepted(const std::string& scenario) {
  const auto checked = test::syncline_run({"check", scenario});
  EXPECT_EQ(checked.code, 0) << checked.err;
  EXPECT_TRUE(test::contains(checked.out, ": correct")) << checked.out;
}

// The buckets that the program finds are those that DDP logged, byte by byte.
void expect_buckets_of_ddp(const std::string& folder, const std::string& job) {
  const auto facts = nlohmann::json::parse(test::text_of(folder + "/" + job + ".facts.json"));
  const auto printed = answer({"buckets", folder + "/" + job + ".json"});
  nlohmann::json found;
  for (const auto& bucket : printed["buckets"]) {
    found.push_back(bucket["bytes"]);
  }
  EXPECT_EQ(found, facts["bucket_bytes"]) << job;
}

TEST(Record, PrintsTheScriptAsItStands) {
  const auto ran = test::syncline_run({"record"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, test::text_of(kScript));
}

TEST(Record, WritesTheSame) {
  const test::Scratch scratch;
  const auto ran = test::syncline_run({"record", "-o", scratch.path("own.py")});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(test::text_of(scratch.path("own.py")), test::text_of(kScript));
}

TEST(Record, NamesAFileThatCannotBeWritten) {
  const auto ran = test::syncline_run({"record", "-o", "/nowhere/own.py"});
  EXPECT_EQ(ran.code, 3);
  EXPECT_TRUE(test::contains(ran.err, "/nowhere/own.py")) << ran.err;
}

TEST(Record, NeedsNothingButTorch) {
  std::istringstream script(test::text_of(kScript));
  const std::set<std::string> known{"argparse", "contextlib",
                                    "errno",    "functools",
                                    "gc",       "json",
                                    "math",     "mmap",
                                    "os",       "queue",
                                    "resource", "runpy",
                                    "secrets",  "socket",
                                    "stat",     "statistics",
                                    "sys",      "threading",
                                    "time",     "types",
                                    "torch",    "torch.distributed"};
  std::string line;
  while (std::getline(script, line)) {
    std::istringstream words(line);
    std::string first;
    std::string module;
    words >> first >> module;
    if (!line.starts_with("import ") && !line.starts_with("from ")) continue;
    EXPECT_TRUE(known.contains(module)) << line;
  }
}

TEST(Record, OneRankAndLaterVersionsByStandIns) {
  if (torch_is_missing()) GTEST_SKIP() << "no torch in " << python();
  const test::Scratch scratch;
  test::Program job({python(), kJobs, "alone", scratch.folder()}, one_thread());
  const auto ran = job.wait();
  ASSERT_EQ(ran.code, 0) << ran.err;
  for (const char* name : {"alone", "alone_loop", "later", "later_loop", "gpu", "nccl", "uneven"}) {
    expect_accepted(scratch.path(std::string(name) + ".json"));
  }
  // What NCCL was measured to take is what an exchange of that size takes.
  for (const char* name : {"nccl", "uneven"}) {
    const auto run = answer({"run", scratch.path(std::string(name) + ".json")});
    EXPECT_NEAR(run["rows"][0]["error_percent"].get<double>(), 0, 0.01) << name;
  }
}

TEST(Record, WhatGoesWrongIsOneLine) {
  if (torch_is_missing()) GTEST_SKIP() << "no torch in " << python();
  const test::Scratch scratch;
  auto environment = one_thread();
  test::Program job({python(), kJobs, "fails", scratch.folder()}, environment);
  const auto ran = job.wait();
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(ran.err,
            "syncline_record: no forward pass was seen: a step must call the model that was given, "
            "and loss.backward()\n");
  environment["SYNCLINE_TRACEBACK"] = "1";
  test::Program traced({python(), kJobs, "fails", scratch.folder()}, environment);
  EXPECT_TRUE(test::contains(traced.wait().err, "Traceback (most recent call last)"));
}

TEST(Record, TwoRanksAsDdpItselfLoggedThem) {
  if (torch_is_missing()) GTEST_SKIP() << "no torch in " << python();
  const test::Scratch scratch;
  test::Program other({python(), kJobs, "ddp", "1", scratch.folder()}, one_thread());
  test::Program first({python(), kJobs, "ddp", "0", scratch.folder()}, one_thread());
  const auto ran = first.wait();
  const auto ran_too = other.wait();
  ASSERT_EQ(ran.code, 0) << ran.err << ran_too.err;
  ASSERT_EQ(ran_too.code, 0) << ran_too.err;
  EXPECT_EQ(ran_too.out, "");
  for (const char* name : {"ddp", "views", "sparse", "rebuilt", "loop"}) {
    expect_accepted(scratch.path(std::string(name) + ".json"));
    expect_buckets_of_ddp(scratch.folder(), name);
    EXPECT_TRUE(test::contains(ran.out, std::string("syncline tune ") + scratch.path(name)))
        << name;
    // The measured all-reduces make a cluster, too.
    const auto fitted = test::syncline_run(
        {"calibrate", "logs", scratch.path(std::string(name) + ".all_reduce.txt")});
    EXPECT_EQ(fitted.code, 0) << fitted.err;
  }
  const auto ran_plan = answer({"run", scratch.path("rebuilt.json")});
  EXPECT_EQ(ran_plan["rows"][0]["collectives"], 2);
  EXPECT_FALSE(std::filesystem::exists(scratch.path("never.json")));
}

// Two ranks by torchrun. The log settings are those of a rank that is not there: without any, torch
// 1.13 starts nothing under later Pythons.
test::Ran torchrun(const test::Scratch& scratch, const std::vector<std::string>& words) {
  std::vector<std::string> command{python(), "-m", "torch.distributed.run"};
  // --standalone has one port for all jobs of a machine in torch 2.1.
  command.insert(command.end(), {"--rdzv_backend", "c10d", "--rdzv_endpoint", "localhost:0"});
  command.insert(command.end(), {"--nproc_per_node", "2", "-r", "9:1", "-t", "9:1"});
  command.insert(command.end(), {"--log_dir", scratch.path("logs")});
  command.insert(command.end(), words.begin(), words.end());
  return test::Program(command, one_thread()).wait();
}

// To the bit, from its own first step; the recorded ones have used up their batches.
TEST(Record, AScriptGoesOnAsIfNobodyHadLooked) {
  if (torch_is_missing()) GTEST_SKIP() << "no torch in " << python();
  EXPECT_FALSE(test::contains(test::text_of(kTrain), "syncline"));
  const test::Scratch scratch;
  const auto out = scratch.path("job.json");
  const auto recorded =
      torchrun(scratch, {"-m", "syncline_record", "--out", out, kTrain, "--steps",
                         std::to_string(kSteps + 2), "--save", scratch.path("recorded")});
  ASSERT_EQ(recorded.code, 0) << recorded.err;
  EXPECT_TRUE(test::contains(recorded.out, "syncline tune " + out)) << recorded.out;
  expect_accepted(out);
  const auto alone = torchrun(scratch, {kTrain, "--from", std::to_string(kSteps), "--steps", "2",
                                        "--save", scratch.path("alone")});
  ASSERT_EQ(alone.code, 0) << alone.err;
  EXPECT_FALSE(test::text_of(scratch.path("alone")).empty());
  EXPECT_TRUE(test::text_of(scratch.path("recorded")) == test::text_of(scratch.path("alone")));
}

TEST(Record, AScriptThatIsToStopEndsOnceItIsRecorded) {
  if (torch_is_missing()) GTEST_SKIP() << "no torch in " << python();
  const test::Scratch scratch;
  const auto out = scratch.path("job.json");
  const auto ran = torchrun(
      scratch, {"-m", "syncline_record", "--stop", "--out", out, kTrain, "--steps", "100000000"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  expect_accepted(out);
}

TEST(Record, AScriptThatEndsTooEarlyIsTold) {
  if (torch_is_missing()) GTEST_SKIP() << "no torch in " << python();
  const test::Scratch scratch;
  const auto out = scratch.path("job.json");
  const auto ran =
      torchrun(scratch, {"-m", "syncline_record", "--out", out, kTrain, "--steps", "20"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  const auto line = "syncline_record: " + kTrain + " ended after 20 of the " +
                    std::to_string(kSteps) + " steps that a recording needs: " + out +
                    " was not written, and what it saved meanwhile is not valid\n";
  EXPECT_TRUE(test::contains(ran.err, line)) << ran.err;
  EXPECT_FALSE(std::filesystem::exists(out));
}

TEST(Record, AScriptThatCannotBeRecordedKeepsItsExitCode) {
  if (torch_is_missing()) GTEST_SKIP() << "no torch in " << python();
  const auto ran = [](const std::vector<std::string>& words) {
    std::vector<std::string> command{python(), "-m", "syncline_record"};
    command.insert(command.end(), words.begin(), words.end());
    return test::Program(command, one_thread()).wait();
  };
  for (const char* code : {"0", "3"}) {
    const auto plain = ran({kTrain, "--plain", "--steps", "2", "--exit", code});
    EXPECT_EQ(std::to_string(plain.code), code);
    EXPECT_EQ(plain.err, *code == '3' ? ""
                                      : "syncline_record: " + kTrain +
                                            " built no DistributedDataParallel model: nothing was "
                                            "recorded\n");
  }
  const auto untrained =
      torchrun(test::Scratch(), {"-m", "syncline_record", kTrain, "--steps", "0"});
  EXPECT_EQ(untrained.code, 0);
  EXPECT_TRUE(test::contains(untrained.err,
                             "did not train its DistributedDataParallel model with an optimizer of "
                             "torch.optim: nothing was recorded\n"))
      << untrained.err;
  const auto missing = ran({"/nowhere/train.py"});
  EXPECT_EQ(missing.code, 1);
  EXPECT_EQ(missing.err, "syncline_record: /nowhere/train.py: No such file or directory\n");
}

}  // namespace
}  // namespace syncline::record
