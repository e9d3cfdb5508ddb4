// `syncline validate`, `tune --live gloo` and `calibrate live gloo` with real processes: what
// they give, and what is said and left behind when a rank, a link, a disk or a person ends them.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/expect.h"
#include "tests/support/program.h"

namespace syncline::cli {
namespace {

using test::comes_true;
using test::processes_with;
using test::Program;
using test::Ran;
using test::Scratch;
using test::syncline_run;
using test::syncline_words;
using test::text_of;
using test::Variables;
using test::write_text;
using Words = std::vector<std::string>;

Words operator+(const Words& words, const Words& more) { return test::joined(words, more); }

std::string text(int number) { return std::to_string(number); }

// Lines of stderr that are not the talk of a run that goes well.
Words complaints(const std::string& err) {
  Words found;
  std::istringstream in(err);
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("syncline: wrote ", 0) == 0) continue;
    if (line.rfind("syncline: ", 0) == 0) {
      found.push_back(line);
      continue;
    }
    bool talk = false;
    for (const char* known : {"joined: ", ": predicted ", ": measured ", "calibrating ", "ranking ",
                              "evaluation ", "resumed: ", "measuring ", "links: "}) {
      talk = talk || line.find(known) != std::string::npos;
    }
    if (!talk) found.push_back(line);
  }
  return found;
}

// Of a program that ends with this code.
void expect_end(const Ran& ran, int code, const std::string& part) {
  EXPECT_EQ(ran.code, code) << ran.err;
  const std::string& err = ran.err;
  const Words lines = complaints(err);
  EXPECT_EQ(lines.size(), 1u) << err;
  EXPECT_TRUE(test::says(err, part));
  EXPECT_TRUE(test::lacks(err, "gloo"));
}

// A port that was free a moment ago, below those that the system gives to callers.
int free_port() {
  for (int port = 20000 + ::getpid() % 10000;; ++port) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_port = htons(static_cast<std::uint16_t>(port));
    const bool free = ::bind(fd, reinterpret_cast<const sockaddr*>(&any), sizeof any) == 0;
    ::close(fd);
    if (free) return port;
  }
}

class LiveVerbs : public testing::Test {
 protected:
  void SetUp() override {
    static const std::string refusal = [] {
      const Scratch folder;
      LiveVerbs::write_scenario(folder.path("x.json"), 1, 1, 1);
      return syncline_run({"validate", folder.path("x.json"), "--ranks", "1", "--repeats", "1"})
          .err;
    }();
    if (refusal.find("built without Gloo") != std::string::npos) {
      GTEST_SKIP() << "this program was built without Gloo (libgloo-dev)";
    }
  }
  // However a test ends, it leaves no rank.
  void TearDown() override {
    EXPECT_TRUE(comes_true([&] { return processes_with(scratch.folder()).empty(); }));
    for (const pid_t pid : processes_with(scratch.folder())) ::kill(pid, SIGKILL);
  }

  // Steps of about `milliseconds` in as many strategies, s0, s1 and so on.
  static void write_scenario(const std::string& file, int ranks, int milliseconds, int strategies) {
    Json json = {{"name", "small"},
                 {"workload", {{"name", "w"}, {"batch", 8}, {"forward_ms", milliseconds / 2.0}}},
                 {"cluster",
                  {{"name", "c"},
                   {"nodes", ranks},
                   {"gpus_per_node", 1},
                   {"inter", {{"latency_us", 50}, {"bandwidth_gbps", 5}}}}}};
    for (int i = 0; i < 4; ++i) {
      json["workload"]["tensors"].push_back({{"name", "l." + text(i)},
                                             {"shape", {20000 + 1000 * i}},
                                             {"backward_us", milliseconds * 1000 / 8}});
    }
    for (int i = 0; i < strategies; ++i) {
      json["strategies"].push_back({{"name", "s" + text(i)}, {"streams", 1 + i % 2}});
    }
    json["search"] = {{"fusion", {{"size_mb", {0.05, 0.1, 0.2, 1}}, {"rules", {"none", "one"}}}}};
    write_text(file, json.dump(2));
  }
  std::string scenario(int ranks, int milliseconds = 200, int strategies = 2) const {
    write_scenario(scratch.path("x.json"), ranks, milliseconds, strategies);
    return scratch.path("x.json");
  }
  Words validation(const std::string& file, int repeats, int timeout = 60) const {
    return {"validate",  file,          "--warmup",  "1",
            "--repeats", text(repeats), "--timeout", text(timeout)};
  }

  pid_t rank_of(const std::string& variable) const {
    std::vector<pid_t> found;
    comes_true([&] {
      found = processes_with(scratch.folder(), variable);
      return !found.empty();
    });
    return found.empty() ? -1 : found.front();
  }

  // torchrun's variables for a rank.
  static Variables place(int rank, int ranks, int port) {
    return {{"RANK", text(rank)},
            {"WORLD_SIZE", text(ranks)},
            {"MASTER_ADDR", "127.0.0.1"},
            {"MASTER_PORT", text(port)}};
  }

  Scratch scratch;
};

// Some steps into the first row.
void wait_for_mid_step(const Program& program) {
  ASSERT_TRUE(program.says("s0: predicted")) << program.err();
  std::this_thread::sleep_for(std::chrono::milliseconds(350));
}

TEST_F(LiveVerbs, OperatorsNeedAGpu) {
  const auto ran = syncline_run({"validate", scenario(1), "--ranks", "1", "--compute", "kernels"});
  EXPECT_TRUE(test::refused(ran, "--compute kernels needs --backend nccl"));
}

TEST_F(LiveVerbs, AValidationIsWhatWasPromised) {
  const Ran ran =
      syncline_run(validation(scenario(2, 20, 3), 3) + Words{"--ranks", "2", "--format", "json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(complaints(ran.err), Words());
  const Json json = Json::parse(ran.out);
  EXPECT_EQ(json.at("backend"), "gloo");
  EXPECT_EQ(json.at("ranks"), 2);
  EXPECT_FALSE(json.at("hardware").get<std::string>().empty());
  EXPECT_FALSE(json.at("links").empty());
  ASSERT_EQ(json.at("rows").size(), 3u);
  for (const auto& row : json.at("rows")) {
    EXPECT_EQ(row.at("values_match"), true);
    const double predicted = row.at("predicted_s");
    const double median = row.at("measured_median_s");
    EXPECT_GE(predicted, 0.02);
    EXPECT_GE(median, 0.02);
    EXPECT_GE(row.at("measured_p95_s").get<double>(), median);
    EXPECT_NEAR(row.at("error_percent").get<double>(), (predicted / median - 1) * 100, 1e-6);
  }
  EXPECT_EQ(json.at("rows")[1].at("strategy"), "s1");
}

TEST_F(LiveVerbs, WithoutRanksItSaysWhatToDo) {
  const Ran ran = syncline_run(validation(scenario(2), 3));
  expect_end(ran, 2, "--ranks N");
  EXPECT_TRUE(test::says(ran.err, "mpirun"));
}

TEST_F(LiveVerbs, TheScenariosNumberOfRanksIsRequired) {
  expect_end(syncline_run(validation(scenario(2), 3) + Words{"--ranks", "3"}), 2,
             "are 2 ranks, but 3 were started");
}

struct Blow {
  int rank;
  int signal;
  std::string named;
};

class ARankIsStruck : public LiveVerbs, public testing::WithParamInterface<Blow> {};

TEST_P(ARankIsStruck, IsNamedInOneLine) {
  const Blow blow = GetParam();
  const int timeout = blow.signal == SIGSTOP ? 2 : 60;
  Program job(syncline_words(validation(scenario(3), 10000, timeout) + Words{"--ranks", "3"}));
  wait_for_mid_step(job);
  const pid_t rank = rank_of("SYNCLINE_RANK=" + text(blow.rank));
  ASSERT_GT(rank, 0);
  ::kill(rank, blow.signal);
  const Ran ran = job.wait();
  expect_end(ran, 3, "rank " + text(blow.rank) + blow.named);
}

const std::string kDied = " ended in the middle of the run";
const std::string kHangs = " has been silent for 2 s";
INSTANTIATE_TEST_SUITE_P(Killed, ARankIsStruck,
                         testing::Values(Blow{0, SIGKILL, kDied}, Blow{1, SIGKILL, kDied},
                                         Blow{2, SIGKILL, kDied}));
INSTANTIATE_TEST_SUITE_P(Stopped, ARankIsStruck,
                         testing::Values(Blow{0, SIGSTOP, kHangs}, Blow{2, SIGSTOP, kHangs}));

TEST_F(LiveVerbs, TwoRanksKilledAtOnce) {
  Program job(syncline_words(validation(scenario(3), 10000) + Words{"--ranks", "3"}));
  wait_for_mid_step(job);
  const pid_t first = rank_of("SYNCLINE_RANK=0");
  const pid_t second = rank_of("SYNCLINE_RANK=1");
  ::kill(second, SIGKILL);
  ::kill(first, SIGKILL);
  const Ran ran = job.wait();
  EXPECT_EQ(ran.code, 3) << ran.err;
  EXPECT_EQ(complaints(ran.err).size(), 1u) << ran.err;
}

TEST_F(LiveVerbs, StartedByHandAndOneTwice) {
  const int port = free_port();
  const Words words = syncline_words(validation(scenario(2), 12));
  Program first(words, place(0, 2, port));
  Program second(words, place(1, 2, port));
  ASSERT_TRUE(first.says("joined: 2 ranks")) << first.err();
  const Ran first_again = Program(words, place(0, 2, port)).wait();
  expect_end(first_again, 3, "rank 0 cannot listen where the other ranks look for it");
  // Nobody listens any more: it waits as one that came too early would, and says what may be.
  const Ran again =
      Program(syncline_words(validation(scenario(2), 12, 1)), place(1, 2, port)).wait();
  expect_end(again, 3, "all ranks have met and this is a second rank 1");
  // The others go on.
  const Ran ran = first.wait();
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(complaints(ran.err), Words());
  EXPECT_TRUE(test::says(ran.out, "Every communicated value equals the host executor's"));
  const Ran other = second.wait();
  EXPECT_EQ(other.code, 0);
  EXPECT_EQ(other.out + other.err, "");
}

// Two ranks that do not fit each other.
void expect_misfit(const Words& first, const Words& second, const Variables& place_of_first,
                   const Variables& place_of_second, const std::string& part) {
  Program one(syncline_words(first), place_of_first);
  Program other(syncline_words(second), place_of_second);
  const Ran a = one.wait(), b = other.wait();
  EXPECT_EQ(b.code, 3);
  expect_end({a.code, a.signal, a.out, a.err + b.err}, 3, part);
}

TEST_F(LiveVerbs, AWrongWorldSize) {
  const int port = free_port();
  const Words words = validation(scenario(2), 3);
  expect_misfit(words, words, place(0, 2, port), place(1, 3, port),
                "rank 1 was started for 3 ranks, rank 0 for 2");
}

TEST_F(LiveVerbs, RanksWithDifferentScenarios) {
  const int port = free_port();
  write_scenario(scratch.path("other.json"), 2, 100, 2);
  expect_misfit(validation(scenario(2), 3), validation(scratch.path("other.json"), 3),
                place(0, 2, port), place(1, 2, port), "rank 1 was started with another scenario");
}

TEST_F(LiveVerbs, ARankThatNeverJoins) {
  const Words words = syncline_words(validation(scenario(2), 3, 1));
  const Ran first = Program(words, place(0, 2, free_port())).wait();
  expect_end(first, 3, "rank 1 did not join within 1 s");
  expect_end(Program(words, place(1, 2, free_port())).wait(), 3, "rank 0 did not join within 1 s");
}

TEST_F(LiveVerbs, BrokenVariablesAreNamed) {
  const Words words = syncline_words(validation(scenario(2), 3));
  Variables variables = place(5, 2, 20000);
  expect_end(Program(words, variables).wait(), 2, "RANK: found '5', expected 0 to 1");
}

TEST_F(LiveVerbs, AFullDiskForTheReport) {
  const std::string folder = scratch.path("disk");
  std::filesystem::create_directories(folder);
  const auto own_disk = [&] {
    return ::unshare(CLONE_NEWNS) == 0 &&
           ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
           ::mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=4k") == 0;
  };
  if (Program({"false"}, {}, [&] { ::_exit(own_disk() ? 0 : 1); }).wait().code != 0) {
    GTEST_SKIP() << "this machine permits no mounts of a process's own";
  }
  const std::string report = folder + "/report.json";
  const Ran ran =
      Program(syncline_words(validation(scenario(2, 20), 3) + Words{"--ranks", "2", "-o", report}),
              {},
              [&] {
                own_disk();
                write_text(folder + "/full", std::string(4096, 'x'));
              })
          .wait();
  expect_end(ran, 3, report + ": No space left on device");
  EXPECT_TRUE(test::says(ran.out, "\ns0 ")) << "what was measured";
}

TEST_F(LiveVerbs, InterruptedItPrintsTheRowsSoFar) {
  Program job(syncline_words(validation(scenario(2, 100, 30), 3) + Words{"--ranks", "2"}));
  ASSERT_TRUE(job.says("s0: measured")) << job.err();
  job.signal(SIGINT);
  const Ran ran = job.wait();
  EXPECT_EQ(ran.code, 130) << ran.err;
  EXPECT_EQ(complaints(ran.err), Words());
  EXPECT_TRUE(test::says(ran.out, "\ns0 "));
  EXPECT_TRUE(test::lacks(ran.out, "\ns29 "));
}

TEST_F(LiveVerbs, UnderMpirun) {
  if (test::shell("command -v mpirun").code != 0) {
    GTEST_SKIP() << "mpirun (openmpi-bin) is not installed";
  }
  // Open MPI itself loses memory, where the address sanitizer counts it.
  const Words mpirun{"env",
                     "ASAN_OPTIONS=detect_leaks=0",
                     "mpirun",
                     "--allow-run-as-root",
                     "--oversubscribe",
                     "-n",
                     "2"};
  const Ran ran =
      Program(mpirun + syncline_words(validation(scenario(2, 20), 3) + Words{"--format", "json"}))
          .wait();
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json report = Json::parse(ran.out);
  for (const auto& row : report.at("rows")) EXPECT_EQ(row.at("values_match"), true);

  Program job(mpirun + syncline_words(validation(scenario(2), 10000)));
  wait_for_mid_step(job);
  const pid_t rank = rank_of("OMPI_COMM_WORLD_RANK=1");
  ASSERT_GT(rank, 0);
  ::kill(rank, SIGKILL);
  const Ran struck = job.wait();
  // mpirun has words of its own for it, and may end rank 0 before that has spoken.
  EXPECT_NE(struck.code, 0);
  EXPECT_TRUE(test::says(struck.err, "rank 1"));
  EXPECT_TRUE(test::lacks(struck.err, "gloo"));
}

TEST_F(LiveVerbs, ALinkIsCutInTheLab) {
  const Words lab{"lab", "--ranks", "2", "--rate", "1gbit"};
  const Ran trial = syncline_run(lab + Words{"--", "true"});
  if (trial.code != 0) GTEST_SKIP() << "this machine permits no network lab: " << trial.err;
  // So late that the ranks have met on a loaded machine too; the run would last much longer.
  expect_end(syncline_run(lab + Words{"--cut", "1@3", "--"} +
                          syncline_words(validation(scenario(2), 10000, 2))),
             3, "rank 1");
}

TEST_F(LiveVerbs, ATuningIsResumed) {
  const Words words =
      syncline_words({"tune", scenario(2, 40), "--live", "gloo", "--ranks", "2", "--steps", "3",
                      "--budget", "4", "--format", "json", "--journal", scratch.path("journal")});
  {
    Program job(words);
    ASSERT_TRUE(job.says("evaluation 2 of")) << job.err();
    const pid_t rank = rank_of("SYNCLINE_RANK=1");
    ASSERT_GT(rank, 0);
    ::kill(rank, SIGKILL);
    const Ran ran = job.wait();
    expect_end(ran, 3, "rank 1 ended in the middle of the run");
  }
  const std::string journal = text_of(scratch.path("journal"));
  EXPECT_FALSE(journal.empty());
  const Ran ran = Program(words).wait();
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(test::says(ran.err, "resumed: "));
  EXPECT_EQ(text_of(scratch.path("journal")).substr(0, journal.size()), journal);
  const Json answer = Json::parse(ran.out);
  EXPECT_GE(answer.at("evaluations"), 2);
  EXPECT_LE(answer.at("evaluations"), 4);
  EXPECT_TRUE(answer.at("best").contains("fusion"));
  // And again: there is nothing left to do.
  const Ran again = Program(words).wait();
  EXPECT_EQ(again.code, 0);
  EXPECT_EQ(again.out, ran.out);
}

TEST_F(LiveVerbs, AJournalOfAnotherSearchIsRefusedOnce) {
  write_text(scratch.path("journal"), "{\"something\": \"else\"}\n");
  const Ran ran = syncline_run({"tune", scenario(2, 20), "--live", "gloo", "--ranks", "2",
                                "--steps", "3", "--journal", scratch.path("journal")});
  EXPECT_EQ(ran.code, 2) << ran.err;
  const Words lines = complaints(ran.err);
  ASSERT_EQ(lines.size(), 1u) << ran.err;
  EXPECT_TRUE(test::says(lines.front(), scratch.path("journal"))) << ran.err;
}

TEST_F(LiveVerbs, ACalibrationIsAClusterToRunOn) {
  const std::string file = scratch.path("cluster.json");
  const Ran ran = syncline_run({"calibrate", "live", "gloo", "--ranks", "2", "-o", file});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(complaints(ran.err), Words());
  const Json cluster = Json::parse(text_of(file));
  const Json& curve = cluster.at("inter").at("measured_steps_us");
  ASSERT_GE(curve.size(), 2u);
  for (std::size_t i = 1; i < curve.size(); ++i) {
    EXPECT_GT(curve[i][0], curve[i - 1][0]);
    EXPECT_GE(curve[i][1], curve[i - 1][1]);
  }
  Json json = Json::parse(text_of(scenario(2)));
  json["cluster"] = {{"file", "cluster.json"}};
  json.erase("search");
  write_text(scratch.path("on_it.json"), json.dump());
  const Ran run = syncline_run({"run", scratch.path("on_it.json")});
  EXPECT_EQ(run.code, 0) << run.err;
}

}  // namespace
}  // namespace syncline::cli
