// `syncline tune --live emulated`: killed at any moment and started again, the command repeats no
// finished evaluation and prints what an undisturbed run prints.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>

#include "tests/support/expect.h"
#include "tests/support/program.h"

namespace syncline::cli {
namespace {

using test::Ran;
using test::Scratch;
using test::shell;
using test::text_of;
using test::write_text;

// A small scenario in the scratch folder: ranking its candidates takes no time.
std::string scenario_in(const Scratch& scratch) {
  std::string tensors;
  for (int i = 0; i < 12; ++i) {
    tensors += std::string(i > 0 ? ", " : "") + R"({"name": "l.)" + std::to_string(i) +
               R"(", "shape": [)" + std::to_string(90000 + 90000 * (i % 5)) +
               R"(], "backward_us": 900})";
  }
  write_text(scratch.path("x.json"),
             R"({"name": "x", "workload": {"name": "w", "batch": 8, "forward_ms": 5,
      "tensors": [)" +
                 tensors + R"(]}, "cluster": {"name": "c", "nodes": 4, "gpus_per_node": 1,
      "inter": {"latency_us": 50, "bandwidth_gbps": 5}}, "strategies": [{"name": "base"}],
      "search": {"fusion": {"optimum": true, "size_mb": "breakpoints"}, "streams": [1, 2]}})");
  return scratch.path("x.json");
}

std::string live(const std::string& scenario, const std::string& options) {
  return "'" SYNCLINE_BINARY "' tune '" + scenario + "' --live emulated " + options;
}

TEST(CliTuneLive, SaysThatItIsAnEmulation) {
  const Scratch scratch;
  const std::string scenario = scenario_in(scratch);
  const Ran ran = shell(live(scenario, "--wrong latency=2,bandwidth=0.5 2>/dev/null"));
  EXPECT_EQ(ran.code, 0);
  EXPECT_TRUE(test::says(ran.out, "on an emulated machine", "nothing was measured",
                         "emulated, 2 % noise per step", "50 steps an evaluation",
                         "latency x2, bandwidth x0.5", "in truth that takes"));
  const Ran talk = shell(live(scenario, "2>&1 >/dev/null"));
  EXPECT_TRUE(test::says(talk.out, "evaluation 1 of at most 12: "));

  const Json answer = Json::parse(shell(live(scenario, "--format json 2>/dev/null")).out);
  EXPECT_LE(answer["evaluations"], 12);
  EXPECT_EQ(answer["evaluations"], answer["observations"].size());
  EXPECT_LE(answer["regret_percent"], 2);
  EXPECT_TRUE(answer["best"].contains("fusion"));
}

// What a kill leaves behind is a beginning of the journal, with or without a piece of the next
// line. From every such beginning the answer and the journal come out the same to the byte.
TEST(CliTuneLive, EveryBeginningOfItsJournalEndsTheSame) {
  const Scratch scratch;
  const std::string options = "--format json --budget 7 --noise 8 --journal ";
  const std::string scenario = scenario_in(scratch);
  const Ran whole = shell(live(scenario, options + scratch.path("whole") + " 2>/dev/null"));
  ASSERT_EQ(whole.code, 0);
  const std::string journal = text_of(scratch.path("whole"));
  const auto lines = std::count(journal.begin(), journal.end(), '\n');
  ASSERT_GT(lines, 3) << journal;
  std::size_t end = 0;
  for (long kept = 0; kept < lines; ++kept) {
    for (const std::size_t piece : {std::size_t{0}, std::size_t{9}}) {
      write_text(scratch.path("cut"), journal.substr(0, end + piece));
      const Ran again =
          shell(live(scenario, options + scratch.path("cut") + " 2>" + scratch.path("talk")));
      EXPECT_EQ(again.code, 0);
      EXPECT_EQ(again.out, whole.out) << "after " << kept << " lines";
      EXPECT_EQ(text_of(scratch.path("cut")), journal) << "after " << kept << " lines";
      // The header is a line; what came after it was not measured again.
      const std::string talk = text_of(scratch.path("talk"));
      for (long number = 1; number < lines; ++number) {
        const std::string begun = "evaluation " + std::to_string(number) + " of";
        EXPECT_EQ(talk.find(begun) == std::string::npos, number < kept) << talk;
      }
    }
    end = journal.find('\n', end) + 1;
  }
}

// Lives of a random length, until one gets through.
TEST(CliTuneLive, KilledAtRandomItResumes) {
  const Scratch scratch;
  const std::string scenario = scenario_in(scratch);
  const std::string options = "--format json --budget 6 --noise 8 --pace 0.1 --journal ";
  const Ran whole = shell(live(scenario, options + scratch.path("whole") + " 2>/dev/null"));
  ASSERT_EQ(whole.code, 0);
  Ran last;
  std::string talk;
  unsigned state = 12345;
  for (int life = 0; life < 60 && last.code != 0; ++life) {
    state = state * 1103515245U + 12345U;
    const unsigned milliseconds = 100 + state / 65536 % 300 + static_cast<unsigned>(100 * life);
    last = shell("timeout -s KILL " + std::to_string(milliseconds / 1000) + "." +
                 std::to_string(1000 + milliseconds % 1000).substr(1) + " " +
                 live(scenario, options + scratch.path("killed") + " 2>>" + scratch.path("talk")));
  }
  ASSERT_EQ(last.code, 0);
  EXPECT_EQ(last.out, whole.out);
  EXPECT_EQ(text_of(scratch.path("killed")), text_of(scratch.path("whole")));
}

TEST(CliTuneLive, InterruptedItSaysHowToGoOn) {
  const Scratch scratch;
  const std::string scenario = scenario_in(scratch);
  const std::string options = "--budget 6 --noise 8 --pace 0.5 --journal " + scratch.path("j");
  // Without job control (set -m) a shell has its background commands ignore SIGINT.
  const Ran ran =
      shell("set -m 2>/dev/null; " +
            live(scenario, options + " 2>" + scratch.path("talk") +
                               " & p=$!; while ! grep -q 'evaluation 1' " + scratch.path("talk") +
                               "; do sleep 0.05; done; kill -INT $p; wait $p"));
  EXPECT_EQ(ran.code, 130) << text_of(scratch.path("talk"));
  const std::string talk = text_of(scratch.path("talk"));
  EXPECT_TRUE(test::says(talk, "to go on from there, repeat: syncline tune",
                         "--journal " + scratch.path("j")));
  const std::regex sentence("Interrupted after [1-5] evaluations? of at most 6");
  EXPECT_TRUE(std::regex_search(ran.out, sentence)) << ran.out;
}

TEST(CliTuneLive, WrongInputIsRefused) {
  const Scratch scratch;
  const std::string scenario = scenario_in(scratch);
  const auto refused = [&](const std::string& command, const std::string& part) {
    const Ran ran = shell(command + " 2>&1");
    EXPECT_EQ(ran.code, 2) << command << "\n" << ran.out;
    EXPECT_TRUE(test::says(ran.out, part));
  };
  refused(live(scenario, "--wrong latency=0"), "--wrong: found 'latency=0'");
  refused(live(scenario, "--wrong speed=2"), "--wrong: found 'speed=2'");
  refused(live(scenario, "--budget 0"), "--budget: found 0");
  refused(live(scenario, "--noise 50"), "--noise");
  refused(live(scenario, "--jobs 2"), "--jobs");
  refused("'" SYNCLINE_BINARY "' tune '" + scenario + "' --live pigeons", "emulated");
  refused("'" SYNCLINE_BINARY "' tune '" + scenario + "' --live gloo", "--ranks: missing");
  refused(live(scenario, "--exhaustive"), "--live emulated has no ranks");
  refused("'" SYNCLINE_BINARY "' tune '" + scenario + "' --noise 1", "--live");
  // Another search's journal is not gone on with.
  ASSERT_EQ(shell(live(scenario, "--journal " + scratch.path("j") + " >/dev/null 2>&1")).code, 0);
  refused(live(scenario, "--seed 2 --journal " + scratch.path("j")), "seed is 1 there and 2 here");
  refused(live(scenario, "--wrong latency=2 --journal " + scratch.path("j")), "scenario is");
}

}  // namespace
}  // namespace syncline::cli
