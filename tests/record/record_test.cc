// `syncline record`: the file that it gives, and what real training jobs write with it. The jobs
// check what they recorded themselves (jobs.py); here the program reads it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/expect.h"
#include "tests/support/text.h"
#include "tests/support/torch.h"

namespace syncline::record {
namespace {

using test::one_thread;
using test::python;
using Record = test::WithTorch;

const std::string kScript = SYNCLINE_SOURCE_DIR "/pytorch/syncline_record.py";
const std::string kJobs = SYNCLINE_SOURCE_DIR "/tests/record/jobs.py";
const std::string kSharded = SYNCLINE_SOURCE_DIR "/tests/record/sharded.py";
const std::string kTrain = SYNCLINE_SOURCE_DIR "/tests/record/train.py";
const std::string kChain = SYNCLINE_SOURCE_DIR "/tests/record/chain.py";
const std::string kZero = SYNCLINE_SOURCE_DIR "/tests/record/zero.py";
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

// jobs.py or the recorder's module, in Python with one thread.
std::unique_ptr<test::Program> started(const std::vector<std::string>& words,
                                       const test::Variables& environment = one_thread()) {
  std::vector<std::string> command{python()};
  command.insert(command.end(), words.begin(), words.end());
  return std::make_unique<test::Program>(command, environment);
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

TEST(RecordVerb, PrintsTheScriptUnchanged) {
  const auto ran = test::syncline_run({"record"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, test::text_of(kScript));
}

TEST(RecordVerb, WritesTheSame) {
  const test::Scratch scratch;
  const auto ran = test::syncline_run({"record", "-o", scratch.path("own.py")});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(test::text_of(scratch.path("own.py")), test::text_of(kScript));
}

TEST(RecordVerb, NamesAFileThatCannotBeWritten) {
  EXPECT_TRUE(
      test::failed(test::syncline_run({"record", "-o", "/nowhere/own.py"}), 2, "/nowhere/own.py"));
}

TEST(RecordVerb, NeedsNothingButTorch) {
  EXPECT_EQ(test::imported_by(test::text_of(kScript)),
            (std::set<std::string>{"argparse",
                                   "contextlib",
                                   "errno",
                                   "functools",
                                   "gc",
                                   "importlib",
                                   "json",
                                   "math",
                                   "mmap",
                                   "os",
                                   "queue",
                                   "re",
                                   "runpy",
                                   "secrets",
                                   "socket",
                                   "stat",
                                   "statistics",
                                   "sys",
                                   "threading",
                                   "time",
                                   "types",
                                   "torch",
                                   "torch.distributed"}));
}

TEST_F(Record, OneRankAndLaterVersionsAreRecorded) {
  const auto ran = started({kJobs, "alone", scratch_.folder()})->wait();
  ASSERT_EQ(ran.code, 0) << ran.err;
  for (const char* name : {"alone", "alone_loop", "later", "later_loop", "gpu", "nccl", "uneven"}) {
    expect_accepted(scratch_.path(std::string(name) + ".json"));
  }
  // What NCCL was measured to take is what an exchange of that size takes.
  for (const char* name : {"nccl", "uneven"}) {
    const auto run = answer({"run", scratch_.path(std::string(name) + ".json")});
    EXPECT_NEAR(run["rows"][0]["error_percent"].get<double>(), 0, 0.01) << name;
  }
}

TEST_F(Record, FailuresAreOneLine) {
  auto environment = one_thread();
  const auto fails = [&] {
    return started({kJobs, "fails", scratch_.folder()}, environment)->wait();
  };
  const auto ran = fails();
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(ran.err,
            "syncline_record: no forward pass was seen: a step must call the model that was given, "
            "and loss.backward()\n");
  environment["SYNCLINE_TRACEBACK"] = "1";
  EXPECT_TRUE(test::contains(fails().err, "Traceback (most recent call last)"));
}

TEST_F(Record, TwoRanksAsDdpItselfLoggedThem) {
  const auto other = started({kJobs, "ddp", "1", scratch_.folder()});
  const auto ran = started({kJobs, "ddp", "0", scratch_.folder()})->wait();
  const auto ran_too = other->wait();
  ASSERT_EQ(ran.code, 0) << ran.err << ran_too.err;
  ASSERT_EQ(ran_too.code, 0) << ran_too.err;
  EXPECT_EQ(ran_too.out, "");
  for (const char* name : {"ddp", "views", "sparse", "rebuilt", "loop"}) {
    expect_accepted(scratch_.path(std::string(name) + ".json"));
    expect_buckets_of_ddp(scratch_.folder(), name);
    EXPECT_TRUE(test::contains(ran.out, std::string("syncline tune ") + scratch_.path(name)))
        << name;
    // The measured all-reduces make a cluster, too.
    const auto fitted = test::syncline_run(
        {"calibrate", "logs", scratch_.path(std::string(name) + ".all_reduce.txt")});
    EXPECT_EQ(fitted.code, 0) << fitted.err;
  }
  EXPECT_EQ(answer({"run", scratch_.path("rebuilt.json")})["rows"][0]["collectives"], 2);
  // Passes that accumulate communicate in the last one, or in each.
  for (const char* name : {"last", "each"}) {
    const std::string file = scratch_.path(std::string(name) + ".json");
    expect_accepted(file);
    const auto recorded = nlohmann::json::parse(test::text_of(file));
    EXPECT_EQ(answer({"run", file})["rows"][0]["collectives"],
              recorded["published"][0]["collectives"])
        << name;
  }
  EXPECT_FALSE(std::filesystem::exists(scratch_.path("never.json")));
}

// Two ranks by torchrun. The log settings are those of a rank that is not there: without any, torch
// 1.13 starts nothing under later Pythons.
test::Ran torchrun(const test::Scratch& scratch, const std::vector<std::string>& words,
                   const test::Variables& environment = one_thread()) {
  std::vector<std::string> command{"-m", "torch.distributed.run"};
  // --standalone has one port for all jobs of a machine in torch 2.1.
  command.insert(command.end(), {"--rdzv_backend", "c10d", "--rdzv_endpoint", "localhost:0"});
  command.insert(command.end(), {"--nproc_per_node", "2", "-r", "9:1", "-t", "9:1"});
  command.insert(command.end(), {"--log_dir", scratch.path("logs")});
  command.insert(command.end(), words.begin(), words.end());
  return started(command, environment)->wait();
}

// To the bit, from its own first step; the recorded ones have used up their batches.
TEST_F(Record, AScriptGoesOnAsIfNobodyHadLooked) {
  EXPECT_FALSE(test::contains(test::text_of(kTrain), "syncline"));
  const auto out = scratch_.path("job.json");
  const auto recorded =
      torchrun(scratch_, {"-m", "syncline_record", "--out", out, kTrain, "--steps",
                          std::to_string(kSteps + 2), "--save", scratch_.path("recorded")});
  ASSERT_EQ(recorded.code, 0) << recorded.err;
  EXPECT_TRUE(test::contains(recorded.out, "syncline tune " + out)) << recorded.out;
  expect_accepted(out);
  const auto alone = torchrun(scratch_, {kTrain, "--from", std::to_string(kSteps), "--steps", "2",
                                         "--save", scratch_.path("alone")});
  ASSERT_EQ(alone.code, 0) << alone.err;
  EXPECT_FALSE(test::text_of(scratch_.path("alone")).empty());
  EXPECT_TRUE(test::text_of(scratch_.path("recorded")) == test::text_of(scratch_.path("alone")));
}

TEST_F(Record, AScriptThatIsToStopEndsOnceItIsRecorded) {
  const auto out = scratch_.path("job.json");
  const auto ran = torchrun(
      scratch_, {"-m", "syncline_record", "--stop", "--out", out, kTrain, "--steps", "100000000"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  expect_accepted(out);
}

TEST_F(Record, AScriptThatEndsTooEarlyIsReported) {
  const auto out = scratch_.path("job.json");
  EXPECT_TRUE(test::warned(
      torchrun(scratch_, {"-m", "syncline_record", "--out", out, kTrain, "--steps", "20"}),
      "syncline_record: " + kTrain + " ended after 20 of the " + std::to_string(kSteps) +
          " steps that a recording needs: " + out +
          " was not written, and what it saved meanwhile is not valid\n"));
  EXPECT_FALSE(std::filesystem::exists(out));
}

TEST_F(Record, AScriptThatCannotBeRecordedKeepsItsExitCode) {
  for (const char* code : {"0", "3"}) {
    const auto plain =
        started({"-m", "syncline_record", kTrain, "--plain", "--steps", "2", "--exit", code})
            ->wait();
    EXPECT_EQ(std::to_string(plain.code), code);
    EXPECT_EQ(plain.err, *code == '3' ? ""
                                      : "syncline_record: " + kTrain +
                                            " built no DistributedDataParallel, FSDP or DeepSpeed "
                                            "model: nothing was recorded; a profile of its steps "
                                            "can be, by syncline import\n");
  }
  EXPECT_TRUE(test::warned(torchrun(scratch_, {"-m", "syncline_record", kTrain, "--steps", "0"}),
                           "did not train its DistributedDataParallel model with an optimizer of "
                           "torch.optim: nothing was recorded; a profile of its steps can be, by "
                           "syncline import\n"));
  const auto missing = started({"-m", "syncline_record", "/nowhere/train.py"})->wait();
  EXPECT_EQ(missing.code, 1);
  EXPECT_EQ(missing.err, "syncline_record: /nowhere/train.py: No such file or directory\n");
}

// Returns the output of a job from "trained" on.
std::string trained(const test::Ran& ran) {
  EXPECT_EQ(ran.code, 0) << ran.err;
  const auto at = ran.out.find("trained ");
  EXPECT_NE(at, std::string::npos) << ran.out;
  return at == std::string::npos ? "" : ran.out.substr(at);
}

// record -> tune -> set -> compare, as the README has it. A rank's sum of two is the same in any
// bucket: the settings train what DDP trains, to the bit.
TEST_F(Record, AJobIsTunedSetAndCompared) {
  const auto file = scratch_.path("job.json");
  const auto ran =
      torchrun(scratch_, {"-m", "syncline_record", "--stop", "--out", file, kChain, "1000"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  (void)answer({"tune", file, "--emit", "pytorch", "--python", scratch_.path("syncline_apply.py")});
  const auto modules = scratch_.folder() + ":" SYNCLINE_SOURCE_DIR "/tests/record";
  const auto plain = torchrun(scratch_, {kChain, "5"}, one_thread(modules));
  const auto applied = torchrun(scratch_, {kChain, "5", "applied"}, one_thread(modules));
  EXPECT_EQ(trained(applied), trained(plain));
  const std::string command =
      "OMP_NUM_THREADS=1 PYTHONPATH=" + modules + " " + python() +
      " -m torch.distributed.run --rdzv_backend c10d --rdzv_endpoint localhost:0 -r 9:1 -t 9:1"
      " --log_dir " +
      scratch_.path("logs") + " --nproc_per_node 2 " + kChain + " 5";
  const auto compared =
      test::syncline_run({"compare", command, command + " applied", "--rounds", "1"});
  EXPECT_EQ(compared.code, 0) << compared.err;
}

// On CPUs where torch lets FSDP run on them (2.15 does, 2.6 does not).
class RecordShards : public Record {
 protected:
  void SetUp() override {
    Record::SetUp();
    if (IsSkipped()) return;
    const std::string asks = "import torch; torch.cpu.Stream.record_event";
    if (test::shell(python() + " -c '" + asks + "'").code != 0) {
      GTEST_SKIP() << "no FSDP2 on CPUs in " << python() << ": SYNCLINE_PYTHON names another";
    }
  }

  void run(const std::string& kind, int ranks) const {
    std::vector<std::unique_ptr<test::Program>> others;
    const auto rank = [&](int number) {
      return started(
          {kSharded, kind, std::to_string(number), std::to_string(ranks), scratch_.folder()});
    };
    for (int r = 1; r < ranks; ++r) others.push_back(rank(r));
    const auto ran = rank(0)->wait();
    EXPECT_EQ(ran.code, 0) << kind << ": " << ran.err;
    for (const auto& other : others) EXPECT_EQ(other->wait().code, 0) << kind;
  }

  // Expects the collectives that the recorder saw in the plan of the recorded configuration.
  void expect_collectives_as_seen(const std::string& name) const {
    const std::string file = scratch_.path(name + ".json");
    expect_accepted(file);
    const auto recorded = nlohmann::json::parse(test::text_of(file));
    EXPECT_EQ(answer({"run", file})["rows"][0]["collectives"],
              recorded["published"][0]["collectives"])
        << name;
  }
};

TEST_F(RecordShards, ListTheCollectivesOfFsdp2) {
  run("fsdp2", 2);
  for (const char* name : {"fsdp2", "compiled"}) expect_collectives_as_seen(name);
  expect_accepted(scratch_.path("accumulated.json"));
}

TEST_F(RecordShards, ListTheCollectivesOfFsdp1) {
  run("fsdp1", 2);
  expect_collectives_as_seen("fsdp1");
}

TEST_F(RecordShards, ListTheCollectivesOfAHybridMesh) {
  run("hsdp", 4);
  expect_collectives_as_seen("hsdp");
}

// record -> tune -> set: the advice is lines that wrap a model as it is.
TEST_F(RecordShards, AreTunedAndSet) {
  run("fsdp2", 2);
  const std::string file = scratch_.path("fsdp2.json");
  auto recorded = nlohmann::json::parse(test::text_of(file));
  recorded["strategies"] = {
      {{"name", "advised"},
       {"dialect", "fsdp"},
       {"config", answer({"tune", file, "--emit", "fsdp"})["emitted"]["config"]}}};
  recorded.erase("published");
  test::write_text(scratch_.path("advised.json"), recorded.dump());
  const auto code =
      test::syncline_run({"emit", scratch_.path("advised.json"), "--dialect", "fsdp", "--code"});
  EXPECT_EQ(code.code, 0) << code.err;
  EXPECT_TRUE(test::contains(code.out, "fully_shard(model, **fsdp)")) << code.out;
  test::write_text(scratch_.path("code.txt"), code.out);
  run("set", 2);
}

// The plan of each stage has the collectives that DeepSpeed's own engine asked for.
class RecordZero : public Record, public testing::WithParamInterface<int> {
 protected:
  void SetUp() override {
    Record::SetUp();
    if (IsSkipped()) return;
    if (test::shell(python() + " -c 'import deepspeed'").code != 0) {
      GTEST_SKIP() << "no deepspeed in " << python() << ": SYNCLINE_PYTHON names another";
    }
  }
};

TEST_P(RecordZero, ListsTheCollectivesOfDeepSpeed) {
  const std::string file = scratch_.path("job.json");
  const auto ran = torchrun(scratch_, {"-m", "syncline_record", "--stop", "--out", file, kZero,
                                       std::to_string(GetParam()), "1000"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  expect_accepted(file);
  const auto recorded = nlohmann::json::parse(test::text_of(file));
  EXPECT_EQ(recorded["strategies"][0]["dialect"], "deepspeed");
  EXPECT_EQ(recorded["strategies"][0]["config"]["zero_optimization"]["stage"], GetParam());
  EXPECT_EQ(answer({"run", file})["rows"][0]["collectives"],
            recorded["published"][0]["collectives"]);
  EXPECT_EQ(answer({"tune", file, "--emit", "deepspeed"})["emitted"]["dialect"], "deepspeed");
}

INSTANTIATE_TEST_SUITE_P(Stages, RecordZero, testing::Range(0, 4));

// torchtitan's own trainer, on a processor by what titan_job.py replaces.
class RecordTitan : public Record {
 protected:
  void SetUp() override {
    Record::SetUp();
    if (IsSkipped()) return;
    if (test::shell(python() + " -c 'import torchtitan.trainer'").code != 0) {
      GTEST_SKIP() << "no torchtitan in " << python() << ": SYNCLINE_PYTHON names another";
    }
  }

  test::Ran train(const std::string& job, const std::vector<std::string>& options = {}) const {
    std::vector<std::string> words{"-m", "syncline_record", "--stop", "--out", file(job)};
    words.insert(words.end(), {"-m", "torchtitan.train", "--module", "titan_job", "--config", job});
    words.insert(words.end(), {"--dump_folder", scratch_.path("outputs")});
    words.insert(words.end(), options.begin(), options.end());
    const std::string folder = SYNCLINE_SOURCE_DIR;
    return torchrun(scratch_, words, one_thread(folder + "/pytorch:" + folder + "/tests/record"));
  }

  std::string file(const std::string& job) const { return scratch_.path(job + ".json"); }

  nlohmann::json recorded(const std::string& job) const {
    const auto ran = train(job);
    EXPECT_EQ(ran.code, 0) << ran.err;
    expect_accepted(file(job));
    return nlohmann::json::parse(test::text_of(file(job)), nullptr, false);
  }
};

TEST_F(RecordTitan, AsItWrapsItsModels) {
  const auto scenario = recorded("llama");
  const auto& config = scenario["strategies"][0]["config"];
  EXPECT_EQ(config["units"],
            (nlohmann::json{"tok_embeddings", "layers.*", nlohmann::json{"norm", "lm_head"}}));
  EXPECT_EQ(config["not_resharded"], nlohmann::json{"norm"});
  EXPECT_EQ(answer({"run", file("llama")})["rows"][0]["collectives"],
            scenario["published"][0]["collectives"]);
}

// The head is gathered once more there and its unit summed in two: the note says that it may
// differ.
TEST_F(RecordTitan, ALossInChunksIsOnePass) {
  const auto scenario = recorded("llama_in_chunks");
  EXPECT_FALSE(scenario["workload"].contains("micro_batches"));
  EXPECT_TRUE(test::contains(scenario["notes"].dump(), "calls backward() 9 times")) << scenario;
}

TEST_F(RecordTitan, SaysWhatToDoInsteadOfTensorParallelism) {
  const auto ran =
      train("llama", {"--parallelism.tensor_parallel_degree", "2", "--training.steps", "2"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(test::contains(ran.err,
                             "tensor, context and pipeline parallelism are not recorded; "
                             "profile it instead, and give the traces to syncline import"))
      << ran.err;
  EXPECT_FALSE(std::filesystem::exists(file("llama")));
}

}  // namespace
}  // namespace syncline::record
