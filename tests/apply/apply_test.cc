// `emit --python`: the file that it writes, and real training jobs that it is applied to. The jobs
// check themselves (jobs.py); what DGC exchanged is held here against Syncline's own codec.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/codec.h"
#include "core/compress/dgc.h"
#include "core/compress/momentum_correction.h"
#include "core/compress/power_sgd.h"
#include "tests/support/expect.h"
#include "tests/support/small_plans.h"
#include "tests/support/text.h"
#include "tests/support/torch.h"

namespace syncline::apply {
namespace {

using test::contains;
using test::python;

const std::string kFolder = SYNCLINE_SOURCE_DIR "/pytorch";
const std::string kScript = kFolder + "/syncline_apply.py";
const std::string kJobs = SYNCLINE_SOURCE_DIR "/tests/apply/jobs.py";
const std::string kTuned = SYNCLINE_SOURCE_DIR "/tests/apply/tuned.py";
const std::string kNet = SYNCLINE_SOURCE_DIR "/tests/apply/net.json";

// What the ranks of a job of `script` said; `modules`: the folder of its syncline_apply.py.
std::vector<test::Ran> ran_job(const std::string& cases, int ranks, const std::string& folder,
                               const std::string& modules = kFolder,
                               const std::string& script = kJobs) {
  test::Variables environment = test::one_thread(modules);
  environment["SYNCLINE"] = SYNCLINE_BINARY;
  std::vector<std::unique_ptr<test::Program>> programs;
  for (int rank = 0; rank < ranks; ++rank) {
    programs.push_back(std::make_unique<test::Program>(
        std::vector<std::string>{python(), script, cases, std::to_string(rank),
                                 std::to_string(ranks), folder},
        environment));
  }
  std::vector<test::Ran> ran;
  for (const auto& program : programs) ran.push_back(program->wait(std::chrono::seconds(400)));
  return ran;
}

void expect_to_hold(const std::string& cases, int ranks, const std::string& folder,
                    const std::string& modules = kFolder, const std::string& script = kJobs) {
  for (const auto& rank : ran_job(cases, ranks, folder, modules, script)) {
    EXPECT_EQ(rank.code, 0) << rank.out << rank.err;
  }
}

// `job`: a scenario.
test::Ran emitted(const std::string& strategy, const std::string& file,
                  const std::string& job = kNet, const std::vector<std::string>& more = {}) {
  std::vector<std::string> words{"emit",      job,       "--strategy", strategy,
                                 "--dialect", "pytorch", "--python",   file};
  words.insert(words.end(), more.begin(), more.end());
  return test::syncline_run(words);
}

// The file that a strategy is applied by.
std::string emitted_file(const std::string& strategy, const std::string& file) {
  const auto ran = emitted(strategy, file);
  EXPECT_EQ(ran.code, 0) << ran.err;
  return test::text_of(file);
}

void expect_contains(const std::string& text, std::initializer_list<const char*> parts) {
  for (const char* part : parts) EXPECT_TRUE(contains(text, part)) << part << "\n" << text;
}

using Apply = test::WithTorch;

class Emit : public testing::Test {
 protected:
  std::string job() const { return scratch_.path("job.py"); }

  const test::Scratch scratch_;
};

TEST_F(Apply, GivesWhatDistributedDataParallelGives) {
  expect_to_hold("two", 2, scratch_.folder());
}

TEST_F(Apply, HierarchiesOfFourRanks) { expect_to_hold("four", 4, scratch_.folder()); }

// Ended by itself, with one line that says why. Torch 1.13 now and then aborts behind that, where
// it takes down a group that failed.
void expect_loss(test::Ran ran, const std::string& rank) {
  const std::string abort = "terminate called without an active exception\n";
  if (ran.signal == SIGABRT && ran.err.ends_with(abort)) {
    ran.err.resize(ran.err.size() - abort.size());
  } else {
    EXPECT_EQ(ran.code, 1) << "signal " << ran.signal << "\n" << ran.err;
  }
  EXPECT_FALSE(contains(ran.err, "Traceback")) << ran.err;
  const auto last = ran.err.rfind('\n', ran.err.size() - 2) + 1;
  // Of a backward pass, or of the next step's begin.
  const std::string said = "syncline_apply: rank " + rank + ": bu";
  EXPECT_EQ(ran.err.find(said), last) << ran.err;
  const std::string what = ran.err.substr(std::min(ran.err.size(), last + said.size()));
  EXPECT_TRUE(what.starts_with("cket ") || what.starts_with("ffers could not")) << ran.err;
}

TEST_F(Apply, RefusesBeforeTheFirstStepIfTorchCannotDoIt) {
  expect_to_hold("cannot", 2, scratch_.folder());
}

TEST_F(Apply, ModelsThatDifferAreOneLineThatNamesTheTensor) {
  for (const auto& ran : ran_job("differs", 2, scratch_.folder())) {
    EXPECT_EQ(ran.code, 1);
    EXPECT_EQ(
        ran.err,
        "syncline_apply: the ranks have different models: rank 1 has parameter 6.weight of 3 x "
        "20 float32, rank 0 has parameter 6.weight of 4 x 20 float32\n");
  }
}

TEST_F(Apply, ARankThatIsKilledEndsTheOthers) {
  for (const char* what : {"killed", "killed_powersgd"}) {
    const test::Scratch scratch;
    const auto ran = ran_job(what, 3, scratch.folder());
    EXPECT_EQ(ran[1].signal, SIGKILL) << what;
    expect_loss(ran[0], "0");
    expect_loss(ran[2], "2");
  }
}

// Whatever settings a job tries and keeps, it trains as with DistributedDataParallel, to the bit.
TEST_F(Apply, AJobThatTunesItselfTrainsAsEver) {
  expect_to_hold("two", 2, scratch_.folder(), kFolder, kTuned);
}

TEST_F(Apply, AJobRecordsAsksTriesAndKeepsWhileItTrains) {
  expect_to_hold("course", 2, scratch_.folder(), kFolder, kTuned);
}

TEST_F(Apply, AJobTriesWhatRoundsAndWhatChangesTheTrainingIfAsked) {
  expect_to_hold("changed", 2, scratch_.folder(), kFolder, kTuned);
}

// On CPUs where torch lets FSDP2 run on them (2.15 does, 2.6 does not).
TEST_F(Apply, AShardedJobThatTunesItselfTrainsAsEver) {
  const std::string asks =
      "from torch.distributed.fsdp import FSDPModule as m; "
      "m.set_reshard_after_forward";
  if (test::shell(python() + " -c '" + asks + "'").code != 0) {
    GTEST_SKIP() << "no FSDP2 on CPUs in " << python();
  }
  expect_to_hold("sharded", 2, scratch_.folder(), kFolder, kTuned);
}

TEST_F(Apply, ARankThatIsKilledEndsAJobThatTunesItself) {
  for (const char* what : {"killed", "killed_in_a_turn"}) {
    const test::Scratch scratch;
    const auto ran = ran_job(what, 2, scratch.folder(), kFolder, kTuned);
    EXPECT_EQ(ran[1].signal, SIGKILL) << what;
    expect_loss(ran[0], "0");
  }
}

// One folder has all that a job imports for it.
TEST_F(Apply, TheProgramWritesWhatAJobTunesItselfWith) {
  const auto ran = test::syncline_run({"record", "-o", scratch_.folder()});
  EXPECT_EQ(ran.code, 0) << ran.err;
  for (const char* name : {"syncline_record.py", "syncline_apply.py", "syncline_tuner.py"}) {
    EXPECT_EQ(test::text_of(scratch_.path(name)), test::text_of(kFolder + "/" + name));
  }
}

TEST_F(Apply, ARankThatIsStuckEndsTheOthersAtTheLimit) {
  const auto ran = ran_job("stuck", 2, scratch_.folder());
  expect_loss(ran[0], "0");
  expect_loss(ran[1], "1");
}

TEST_F(Apply, ARankThatIsLateForItsGroupsIsOneLine) {
  const auto ran = ran_job("late", 2, scratch_.folder());
  for (const char* rank : {"0", "1"}) {
    const auto& its = ran[*rank - '0'];
    EXPECT_EQ(its.code, 1) << its.err;
    EXPECT_FALSE(contains(its.err, "Traceback")) << its.err;
    EXPECT_TRUE(contains(its.err, std::string("syncline_apply: rank ") + rank +
                                      ": the ranks could not form their groups"))
        << its.err;
  }
}

// The gradients of jobs.py's dgc case: of one rank, in one step.
struct DgcGradient {
  std::vector<float> local;
  std::vector<float> weight;
  std::vector<float> mean;  // as exchanged
};

// By step, then by gradient.
std::vector<std::vector<DgcGradient>> read_dgc(const std::string& path,
                                               const std::vector<std::size_t>& sizes) {
  std::ifstream in(path, std::ios::binary);
  const auto read = [&](std::size_t size) {
    std::vector<float> values(size);
    std::vector<char> bytes(size * sizeof(float));
    in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  };
  std::vector<std::vector<DgcGradient>> steps;
  while (in.peek() != std::ifstream::traits_type::eof()) {
    auto& gradients = steps.emplace_back();
    for (const std::size_t size : sizes) {
      auto local = read(size);
      auto weight = read(size);
      gradients.push_back({std::move(local), std::move(weight), read(size)});
    }
  }
  return steps;
}

// One gradient on two ranks, exchanged by core/compress.
class OwnDgc {
 public:
  OwnDgc(std::size_t size, bool nesterov, float weight_decay)
      : update_{.momentum = 0.9F, .weight_decay = weight_decay, .nesterov = nesterov},
        velocity_(2, std::vector<float>(size)),
        residual_(2, std::vector<float>(size)) {}

  std::vector<float> mean(const std::array<const DgcGradient*, 2>& ranks, double sparsity) {
    const auto size = ranks[0]->local.size();
    const compress::Codec* codec = compress::find_codec("dgc");
    std::vector<float> sum(size);
    for (std::size_t r = 0; r < 2; ++r) {
      compress::accumulate(ranks[r]->local, ranks[r]->weight, update_, velocity_[r], residual_[r]);
      const auto sent = codec->encode(
          residual_[r], compress::kept_elements(static_cast<std::int64_t>(size), sparsity));
      for (const auto index : sent.indices) velocity_[r][static_cast<std::size_t>(index)] = 0;
      codec->add(sent, sum);
    }
    for (float& value : sum) value /= 2;
    return sum;
  }

 private:
  compress::DgcUpdate update_;
  std::vector<std::vector<float>> velocity_;
  std::vector<std::vector<float>> residual_;
};

void expect_own_dgc(const std::string& prefix, bool nesterov) {
  const std::vector<std::size_t> sizes{80, 1320, 480};
  const auto first = read_dgc(prefix + "0", sizes);
  const auto second = read_dgc(prefix + "1", sizes);
  ASSERT_EQ(first.size(), 20U);
  ASSERT_EQ(second.size(), 20U);
  const Compression ramp{
      .codec = "dgc", .sparsity = {0.75, 0.9, 0.97}, .rampup_begin_step = 3, .rampup_step = 6};
  for (std::size_t g = 0; g < sizes.size(); ++g) {
    OwnDgc own(sizes[g], nesterov, g == 2 ? 0.0625F : 0.0F);
    for (std::size_t step = 0; step < first.size(); ++step) {
      const int index = compress::sparsity_index(ramp, static_cast<std::int64_t>(step));
      if (index < 0) continue;
      const double sparsity = ramp.sparsity[static_cast<std::size_t>(index)];
      const auto mean = own.mean({&first[step][g], &second[step][g]}, sparsity);
      ASSERT_EQ(first[step][g].mean, mean) << prefix << " gradient " << g << " step " << step;
      ASSERT_EQ(second[step][g].mean, mean) << prefix << " gradient " << g << " step " << step;
    }
  }
}

TEST_F(Apply, DgcIsThatOfTheCodecToTheBit) {
  expect_to_hold("dgc", 2, scratch_.folder());
  for (const bool nesterov : {false, true}) {
    for (const char* streams : {"1", "3"}) {
      expect_own_dgc(scratch_.path(std::string("dgc-") + (nesterov ? "1-" : "0-") + streams + "-"),
                     nesterov);
    }
  }
}

// What jobs.py's powersgd case wrote of one rank: floats, one behind the other.
class Floats {
 public:
  explicit Floats(const std::string& path) : bytes_(test::text_of(path)) {}

  std::vector<float> next(std::int64_t count) {
    std::vector<float> values(static_cast<std::size_t>(count));
    // Of no values there is no place to copy to.
    at_ += bytes_.copy(reinterpret_cast<char*>(values.data()), values.size() * sizeof(float), at_);
    return values;
  }
  bool over() const { return at_ == bytes_.size(); }

 private:
  std::string bytes_;
  std::size_t at_ = 0;
};

// One gradient on two ranks, exchanged by core/compress with error feedback and warm start.
class OwnPowerSgd {
 public:
  OwnPowerSgd(const compress::LowRank& matrix, std::vector<float> q)
      : matrix_(matrix),
        q_(std::move(q)),
        error_(2, std::vector<float>(static_cast<std::size_t>(matrix.elements))) {}

  std::vector<float> mean(std::array<std::vector<float>, 2> gradients) {
    compress::orthogonalise(q_, matrix_.rank);
    for (std::size_t r = 0; r < 2; ++r) {
      for (std::size_t i = 0; i < gradients[r].size(); ++i) gradients[r][i] += error_[r][i];
    }
    auto p = sum(compress::first_factor(gradients[0], matrix_, q_),
                 compress::first_factor(gradients[1], matrix_, q_));
    compress::orthogonalise(p, matrix_.rank);
    q_ = sum(compress::second_factor(gradients[0], matrix_, p),
             compress::second_factor(gradients[1], matrix_, p));
    for (float& value : q_) value /= 2;
    std::vector<float> mean(gradients[0].size());
    compress::multiply(p, q_, matrix_, mean);
    for (std::size_t r = 0; r < 2; ++r) {
      for (std::size_t i = 0; i < mean.size(); ++i) error_[r][i] = gradients[r][i] - mean[i];
    }
    return mean;
  }

  static std::vector<float> sum(std::vector<float> a, const std::vector<float>& b) {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
    return a;
  }

 private:
  compress::LowRank matrix_;
  std::vector<float> q_;
  std::vector<std::vector<float>> error_;
};

// `share` of the largest element is what may be rounded.
void expect_close(const std::vector<float>& found, const std::vector<float>& wanted, float share,
                  const std::string& what) {
  float largest = 0;
  float apart = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    largest = std::max(largest, std::abs(wanted[i]));
    apart = std::max(apart, std::abs(found[i] - wanted[i]));
  }
  EXPECT_LE(apart, share * largest) << what;
}

// torch's powerSGD_hook over 20 steps on two ranks, of which the first three travel whole.
void expect_own_power_sgd(const std::string& prefix, std::int64_t rank) {
  const std::vector<std::vector<std::int64_t>> shapes{{4},      {4, 20}, {20}, {20, 33}, {33},
                                                      {33, 40}, {40},    {40}, {40},     {40, 12}};
  std::vector<Floats> ranks{Floats(prefix + "0"), Floats(prefix + "1")};
  const Compression compression{.codec = "powersgd", .rank = rank, .min_rate = 1.5};
  std::vector<compress::LowRank> matrices;
  std::vector<OwnPowerSgd> own;
  for (const auto& shape : shapes) {
    matrices.push_back(
        compress::low_rank_of(test::tensor_of("t", shape), compression, /*shapes_known=*/true));
    const std::int64_t columns = matrices.back().columns * matrices.back().rank;
    // All shapes differ, so that torch's order by shape is that of the gradients.
    auto q = ranks[0].next(columns);
    EXPECT_EQ(ranks[1].next(columns), q);
    own.emplace_back(matrices.back(), std::move(q));
  }
  EXPECT_EQ(matrices[1].rank, rank == 4 ? 0 : rank);
  // Rounding adds up over the steps. From rank 3 on torch's columns come of a QR decomposition, and
  // the last ones of this small net's gradients are hardly told from those behind them: 4e-4 apart
  // at the twentieth step, 1e-5 at the twelfth.
  const float rounding = rank < 3 ? 5e-5F : 1e-3F;
  for (int step = 0; step < 20; ++step) {
    std::vector<std::array<std::vector<float>, 2>> local(shapes.size());
    for (std::size_t r = 0; r < 2; ++r) {
      for (std::size_t t = 0; t < shapes.size(); ++t)
        local[t][r] = ranks[r].next(matrices[t].elements);
    }
    for (std::size_t t = 0; t < shapes.size(); ++t) {
      const auto mean = ranks[0].next(matrices[t].elements);
      EXPECT_EQ(ranks[1].next(matrices[t].elements), mean);
      std::vector<float> found;
      if (step < 3 || matrices[t].rank == 0) {
        found = OwnPowerSgd::sum(local[t][0], local[t][1]);
        for (float& value : found) value /= 2;
      } else {
        found = own[t].mean(local[t]);
      }
      expect_close(found, mean, rounding,
                   prefix + " gradient " + std::to_string(t) + " step " + std::to_string(step));
    }
  }
  EXPECT_TRUE(ranks[0].over() && ranks[1].over());
}

TEST_F(Apply, PowerSgdIsTorchsHook) {
  expect_to_hold("powersgd", 2, scratch_.folder());
  for (const std::int64_t rank : {1, 2, 4}) {
    expect_own_power_sgd(scratch_.path("powersgd-" + std::to_string(rank) + "-"), rank);
  }
}

// What all ranks get of gradients that travel together: each rank's rounded, summed in fp32 by the
// rank whose part it is, from its own on, and rounded once more.
std::vector<float> own_blocks(const compress::Codec& codec, std::vector<std::vector<float>> given) {
  const auto ranks = static_cast<std::int64_t>(given.size());
  std::vector<std::vector<float>> sent;
  for (auto& row : given) sent.push_back(codec.encode(row, 0).values);
  const auto count = static_cast<std::int64_t>(sent[0].size());
  const std::int64_t blocks = (count + codec.block - 1) / codec.block;
  std::vector<float> sum(sent[0].size());
  for (std::int64_t owner = 0; owner < ranks; ++owner) {
    const std::int64_t end = std::min(count, (owner + 1) * blocks / ranks * codec.block);
    for (std::int64_t i = owner * blocks / ranks * codec.block; i < end; ++i) {
      const auto e = static_cast<std::size_t>(i);
      sum[e] = sent[static_cast<std::size_t>(owner)][e];
      for (std::int64_t r = 0; r < ranks; ++r) {
        if (r != owner) sum[e] += sent[static_cast<std::size_t>(r)][e];
      }
    }
  }
  auto mean = codec.encode(sum, 0).values;
  for (float& value : mean) value /= static_cast<float>(ranks);
  return mean;
}

TEST_F(Apply, LowPrecisionIsThatOfTheCodecsToTheBit) {
  const std::vector<std::int64_t> sizes{4, 80, 20, 660, 33, 1320, 40, 40, 40, 480};
  const std::vector<std::vector<std::size_t>> buckets{{0, 1, 2}, {3, 4}, {5, 6, 7, 8, 9}};
  for (const int ranks : {2, 3}) {
    const test::Scratch scratch;
    expect_to_hold("low_precision", ranks, scratch.folder());
    for (const char* name : {"int8", "int4", "fp8", "fp8_e5m2"}) {
      std::vector<Floats> files;
      for (int r = 0; r < ranks; ++r) {
        files.emplace_back(scratch.path(std::string(name) + "-" + std::to_string(r)));
      }
      for (int step = 0; step < 20; ++step) {
        std::vector<std::vector<std::vector<float>>> local(files.size());
        std::vector<std::vector<float>> found;
        for (std::size_t r = 0; r < files.size(); ++r) {
          for (const auto size : sizes) local[r].push_back(files[r].next(size));
          found.clear();
          for (const auto size : sizes) found.push_back(files[r].next(size));
        }
        for (const auto& bucket : buckets) {
          std::vector<std::vector<float>> rows(files.size());
          std::vector<float> mean;
          for (const std::size_t t : bucket) {
            for (std::size_t r = 0; r < files.size(); ++r) {
              rows[r].insert(rows[r].end(), local[r][t].begin(), local[r][t].end());
            }
            mean.insert(mean.end(), found[t].begin(), found[t].end());
          }
          ASSERT_EQ(mean, own_blocks(*compress::find_codec(name), rows))
              << name << ", " << ranks << " ranks, step " << step;
        }
      }
      for (const auto& file : files) EXPECT_TRUE(file.over());
    }
  }
}

TEST_F(Emit, AnEmittedFileSendsBlocksAllToAll) {
  expect_contains(emitted_file("low precision", job()),
                  {R"({"places": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], "codec": "fp8"},)"});
  EXPECT_TRUE(test::refused(emitted("low precision in levels", scratch_.path("levels.py")),
                            "blocks with scales in two levels"));
}

TEST_F(Apply, AnEmittedFileBringsItsStrategy) {
  for (const char* strategy : {"runs", "groups", "at the end"}) {
    const test::Scratch scratch;
    (void)emitted_file(strategy, scratch.path("syncline_apply.py"));
    expect_to_hold("emitted", 2, scratch.folder(), scratch.folder());
  }
}

TEST_F(Apply, AnEmittedFileTakesOuterSteps) {
  expect_contains(emitted_file("diloco", scratch_.path("syncline_apply.py")),
                  {R"("local_sgd": {"period": 4, "begin_step": 1, "delay": 1, "group": 1, )"
                   R"("outer": {"optimizer": "nesterov", "rate": 0.7, "momentum": 0.9}},)"});
  expect_to_hold("emitted_far_apart", 2, scratch_.folder(), scratch_.folder());
}

TEST_F(Emit, AnEmittedFileIsTheScriptWithATable) {
  const auto ran = emitted("everything", job());
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "");
  EXPECT_TRUE(contains(ran.err, "from job import apply; model = apply(model, optimizer)"))
      << ran.err;
  const std::string script = test::text_of(kScript);
  const std::string file = test::text_of(job());
  const auto place = script.find("STRATEGY = None\n");
  const std::string behind = script.substr(place + std::string("STRATEGY = None").size());
  EXPECT_EQ(file.substr(0, place), script.substr(0, place));
  ASSERT_TRUE(file.ends_with(behind));
  const std::string table = file.substr(place, file.size() - behind.size() - place);
  expect_contains(
      table,
      {"# 'everything' for net on 2 ranks of two:\n# 10 buckets on 2 streams, dgc, in groups of 2",
       "# Predicted: ", ".\n# DistributedDataParallel as it comes: ", "\nSTRATEGY = {\n",
       R"("hierarchy": {"form": "leaders", "group_size": 2, "first_all_reduce": 1},)",
       R"("dgc": {"sparsity": [0.75, 0.9], "rampup_begin_step": 2, "rampup_step": 4},)",
       R"(["4.weight", 660],)", R"({"places": [0]},)", R"({"places": [3], "codec": "dgc"},)",
       "Before step 2 what DGC sends later"});
}

// Names come from files of others and must not become code.
TEST_F(Emit, ANameStaysAName) {
  auto scenario = nlohmann::ordered_json::parse(test::text_of(kNet));
  const std::string name = "a\nraise SystemExit('\"\"\"')\n\\";
  scenario["workload"]["name"] = name;
  scenario["strategies"][0]["name"] = name;
  scenario["workload"]["tensors"][0]["name"] = name;
  test::write_text(scratch_.path("net.json"), scenario.dump());
  const auto ran = test::syncline_run(
      {"emit", scratch_.path("net.json"), "--dialect", "pytorch", "--python", job()});
  EXPECT_EQ(ran.code, 0) << ran.err;
  const std::string file = test::text_of(job());
  EXPECT_FALSE(contains(file, "\nraise SystemExit")) << file;
  EXPECT_TRUE(contains(file, R"(["a\nraise)")) << file;
}

TEST_F(Emit, AveragesBuffersToo) {
  expect_contains(emitted_file("local", job()),
                  {R"("local_sgd": {"period": 4, "begin_step": 1},)", R"(["1.running_mean", 40],)",
                   "9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 10, 11]"});
}

TEST_F(Emit, FollowsTheLoss) {
  expect_contains(emitted_file("adaptive", job()),
                  {R"("local_sgd": {"adaptive": 1, "init_period": 1, "max_period": 16, )"
                   R"("begin_step": 1},)",
                   "every 1 to 16 steps,\n# as the loss tells: the job calls model.loss(value) in "
                   "each step"});
}

// Whoever pastes the lines must not learn of the third one by an error in the first step.
TEST_F(Emit, UsageNamesTheLossIfItIsNeeded) {
  EXPECT_TRUE(contains(emitted("adaptive", job()).err,
                       "in each step, before optimizer.step(): model.loss(loss)"));
  EXPECT_FALSE(contains(emitted("local", job()).err, "model.loss"));
}

TEST_F(Emit, SaysWhenOnlyTheFileExpressesIt) {
  EXPECT_TRUE(test::refused(
      test::syncline_run({"emit", kNet, "--strategy", "groups", "--dialect", "pytorch"}),
      "; --python FILE writes a Python file that applies it"));
  const auto sharded =
      test::syncline_run({"emit", kNet, "--strategy", "sharded", "--dialect", "pytorch"});
  EXPECT_EQ(sharded.code, 2);
  EXPECT_FALSE(contains(sharded.err, "--python")) << sharded.err;
  EXPECT_TRUE(test::warned(emitted("ddp", job()), "needs no file for this strategy, only {}"));
}

TEST_F(Emit, NamesWhatItCannotApply) {
  const std::vector<std::pair<const char*, const char*>> refused{
      {"sharded", "it shards the parameters"},
      {"split", "its all-reduces are split"},
      {"parts", "it cuts gradients into parts"},
      {"first layers", "it sends the first layers first"},
      {"ticks", "it releases gradients at ticks"},
      {"post-local", "post_localSGD_hook"}};
  for (const auto& [strategy, reason] : refused) {
    const auto ran = emitted(strategy, job());
    EXPECT_TRUE(test::refused(ran, reason));
    EXPECT_TRUE(test::refused(ran, std::string("strategy '") + strategy + "' cannot be applied"));
    EXPECT_FALSE(std::filesystem::exists(job())) << strategy;
  }
}

// A job that torch would end in its first step is not written for.
TEST_F(Emit, NamesWhereTorchFails) {
  auto scenario = nlohmann::ordered_json::parse(test::text_of(kNet));
  scenario["cluster"]["library"] = "gloo";
  scenario["strategies"] = nlohmann::ordered_json::parse(
      R"([{"name": "halves", "streams": 2, "compression": {"codec": "bf16"}},
          {"name": "factors", "streams": 2, "compression": {"codec": "powersgd"}}])");
  scenario["workload"]["tensors"].push_back(
      nlohmann::ordered_json::parse(R"({"name": "scale", "shape": [], "backward_us": 1})"));
  const auto emit = [&](const char* strategy, const char* torch) {
    scenario["workload"]["torch"] = torch;
    test::write_text(scratch_.path("net.json"), scenario.dump());
    return emitted(strategy, job(), scratch_.path("net.json"));
  };
  EXPECT_TRUE(test::refused(emit("halves", "1.13"), "Gloo of torch 1.13 sums no bf16"));
  EXPECT_EQ(emit("halves", "2.7").code, 0);
  EXPECT_TRUE(test::refused(emit("factors", "2.7"), "the first dimension of scale"));
}

// On 4 nodes of 8 GPUs, all-reduces inside by rings and across by trees.
TEST_F(Emit, TellsNcclWhichAlgorithmGoesWhere) {
  const std::string file = scratch_.path("table.csv");
  const auto table_of = [&](const std::string& strategy) {
    std::filesystem::remove(file);
    return emitted(strategy, job(), SYNCLINE_SOURCE_DIR "/tests/apply/levels.json",
                   {"--nccl-table", file});
  };
  EXPECT_TRUE(test::warned(table_of("both by name"), "SYNCLINE_NCCL_TABLE=" + file));
  expect_contains(test::text_of(file),
                  {"\nallreduce,0,-1,ring,any,-1,1,8\n", "\nallreduce,0,-1,tree,any,-1,4,4\n",
                   "\nbroadcast,0,-1,ring,any,-1,1,8\n"});
  expect_contains(test::text_of(job()), {"# NCCL is to choose by the table that"});
  // One kind of collective, one algorithm: a setting says it.
  auto ran = table_of("by kind");
  EXPECT_EQ(ran.code, 0) << ran.err;
  expect_contains(test::text_of(job()),
                  {"'NCCL_ALGO=allgather:ring;allreduce:tree;reducescatter:ring' (NCCL 2.24"});
  ran = table_of("flat tree");
  EXPECT_EQ(ran.code, 0) << ran.err;
  const std::string table = test::text_of(file);
  EXPECT_EQ(table.substr(table.rfind("allreduce")), "allreduce,0,-1,tree,any,-1,4,32\n");
  EXPECT_TRUE(test::refused(table_of("its own"), "names no NCCL algorithm"));
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST_F(Emit, BelongsToPyTorch) {
  EXPECT_TRUE(
      test::refused(test::syncline_run({"emit", kNet, "--dialect", "paddle", "--python", job()}),
                    "add --dialect pytorch"));
  EXPECT_TRUE(
      test::refused(test::syncline_run({"tune", kNet, "--python", job()}), "add --emit pytorch"));
  EXPECT_TRUE(scratch_.empty());
}

// The choice for this net shards its update.
TEST_F(Emit, TuneWritesTheBestThatCanBeApplied) {
  EXPECT_TRUE(test::warned(
      test::syncline_run({"tune", kNet, "--budget", "50", "--emit", "pytorch", "--python", job()}),
      "cannot be applied by a Python file, as it shards"));
  expect_contains(test::text_of(job()), {"\nSTRATEGY = {\n"});
}

TEST_F(Emit, NeedsNothingButTorch) {
  EXPECT_EQ(test::imported_by(test::text_of(kScript)),
            (std::set<std::string>{"atexit", "contextlib", "datetime", "functools", "hashlib",
                                   "importlib", "itertools", "math", "os", "queue", "sys", "torch",
                                   "threading", "torch.distributed", "types"}));
}

}  // namespace
}  // namespace syncline::apply
