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
  const std::set<std::string> known{"contextlib", "errno",      "functools", "gc",
                                    "json",       "math",       "mmap",      "os",
                                    "queue",      "resource",   "secrets",   "socket",
                                    "stat",       "statistics", "sys",       "threading",
                                    "time",       "types",      "torch",     "torch.distributed"};
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
  for (const char* name : {"alone", "alone_loop", "later", "gpu", "nccl", "uneven"}) {
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
    const auto fitted =
        test::syncline_run({"calibrate", scratch.path(std::string(name) + ".all_reduce.txt")});
    EXPECT_EQ(fitted.code, 0) << fitted.err;
  }
  const auto ran_plan = answer({"run", scratch.path("rebuilt.json")});
  EXPECT_EQ(ran_plan["rows"][0]["collectives"], 2);
  EXPECT_FALSE(std::filesystem::exists(scratch.path("never.json")));
}

}  // namespace
}  // namespace syncline::record
