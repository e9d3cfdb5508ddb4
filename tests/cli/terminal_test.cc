// What verbs print on a terminal: as wide as it is, the winner in colour, nothing of that in files.
#include "tests/support/terminal.h"
#include "tests/support/expect.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <map>
#include <regex>
#include <sstream>

#include "cli/output.h"
#include "reports/grid.h"
#include "tests/support/help.h"
#include "tests/support/text.h"

namespace syncline::cli {
namespace {

using test::contains;
using test::kFirst, test::kSource;
using test::run_on_terminal;

std::string without_codes(const std::string& text) {
  return std::regex_replace(text, std::regex("\033\\[[0-9;]*m"), "");
}

// The lines that are wider than a terminal of that many columns, each on a line.
std::string too_wide(const std::string& text, std::size_t columns) {
  std::istringstream lines(without_codes(text));
  std::string line, found;
  while (std::getline(lines, line)) {
    if (reports::display_width(line) > columns) found += line + "\n";
  }
  return found;
}

// What each verb is asked here. Those without a command line print what is for programs: a script,
// a schema, another command's output.
std::map<std::string, std::vector<std::vector<std::string>>> commands() {
  const std::string measured = kSource + "scenarios/measured/";
  const std::string logs = measured + "nccl-tests/h100-cluster01-ib_allreduce_n010x";
  return {
      {"run", {{kFirst}, {kSource + "scenarios/resnet50_ddp.json"}}},
      {"tune",
       {{kFirst},
        {kSource + "scenarios/live/tune_2x1gbit.json", "--live", "emulated", "--budget", "3"}}},
      {"explain", {{kFirst}}},
      {"check", {{kFirst}}},
      {"plan", {{kFirst}}},
      {"buckets", {{kFirst}}},
      {"emit", {{kFirst, "--strategy", "one by one", "--dialect", "pytorch"}}},
      {"import", {{kSource + "tests/data/kineto/resnet50_ddp_2xA100_rank0.json.gz"}}},
      {"init", {}},  // below: asked for a file, as its JSON is one
      {"calibrate", {}},
      {"capture", {}},
      {"calibrate logs", {{logs + "1.txt", logs + "2.txt"}}},
      {"calibrate steps", {{kSource + "scenarios/record/mlp.json"}}},
      {"calibrate live", {{"gloo", "--ranks", "2"}}},
      {"calibrate kernels",
       {{measured + "kernels/h100.json", "--cluster",
         kSource + "scenarios/clusters/v100_4x8_100g.json"}}},
      {"validate",
       {{kFirst, "--set", "cluster.nodes=2", "--ranks", "2", "--warmup", "1", "--repeats", "1"}}},
      {"fidelity",
       {{"--from", kSource + "scenarios", "--set", "live"},
        {"--live", measured + "live/dgc_1gbit.json"}}},
      {"compare", {{"echo step time: 2 ms", "echo step time: 1 ms", "--rounds", "2"}}},
      {"list", {{}}},
      {"record", {}},
      {"lab", {}},
      {"schema", {}},
      {"completion", {}}};
}

void expect_narrow(const std::vector<std::string>& words, std::size_t columns) {
  const auto ran = run_on_terminal(words, static_cast<unsigned short>(columns));
  EXPECT_EQ(ran.code, 0) << words[0] << ran.err;
  EXPECT_FALSE(ran.out.empty()) << words[0];
  EXPECT_EQ(too_wide(ran.out, columns), "") << words[0] << " at " << columns;
}

// A new verb is in the table, and so has to be asked something here.
TEST(Terminal, NoLineOfAnyVerbIsWiderThanTheTerminal) {
  const auto known = commands();
  const auto names = test::verbs_in_help();
  EXPECT_EQ(names.size(), known.size());
  for (const auto& verb : names) {
    ASSERT_TRUE(known.contains(verb)) << verb << ": say in commands() what it is asked";
    for (const auto& words : known.at(verb)) {
      for (const std::size_t columns : {80u, 60u}) {
        expect_narrow(test::with_verb(verb, words), columns);
      }
    }
  }
}

// What the table has below it goes to stderr where stdout is for a program.
TEST(Terminal, WarningsOnStderrFitOneToo) {
  const std::vector<std::string> words{"emit", kSource + "scenarios/resnet50_ddp.json", "--dialect",
                                       "pytorch"};
  const auto whole = run_on_terminal(words, 80);
  ASSERT_NE(too_wide(whole.err, 80), "") << "no remark is long: " << whole.err;
  const auto ran = run_on_terminal(words, 80, {}, /*err_too=*/true);
  EXPECT_EQ(ran.code, 0);
  EXPECT_TRUE(test::says(ran.out, "syncline: "));
  EXPECT_EQ(too_wide(ran.out, 80), "");
}

TEST(Terminal, NoLineOfAnyHelpIsWiderThanTheTerminal) {
  for (const std::size_t columns : {80u, 60u}) {
    expect_narrow({"--help"}, columns);
    expect_narrow({"--version"}, columns);
    for (const auto& verb : test::verbs_in_help()) {
      expect_narrow(test::with_verb(verb, {"--help"}), columns);
      expect_narrow(test::with_verb(verb, {"--help-all"}), columns);
    }
  }
}

// Who reads the help by program (docs/manual.sh, the tests of completion) finds it as a screen
// does.
TEST(Terminal, HelpInAPipeIsThatOfAScreen) {
  const std::string piped = test::syncline_run({"tune", "--help-all"}).out;
  EXPECT_EQ(too_wide(piped, 80), "");
  const std::string shown = run_on_terminal({"tune", "--help-all"}, 60).out;
  const auto words = [](const std::string& text) {
    return std::regex_replace(text, std::regex("\\s+"), "");
  };
  EXPECT_EQ(words(shown), words(piped));
}

TEST(Terminal, InitIsReadOnOneToo) {
  const test::Scratch scratch;
  const std::vector<std::string> arguments{"init",     "gpt2_small", "--node",
                                           "dgx-h100", "-o",         scratch.path("x.json")};
  for (const std::size_t columns : {80u, 60u}) {
    const auto ran = run_on_terminal(arguments, static_cast<unsigned short>(columns));
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(too_wide(ran.out.substr(0, ran.out.find("Written: ")), columns), "");
  }
}

TEST(Terminal, ThePipeHasTheFullWidthAndNoCodes) {
  const std::string piped = test::syncline_run({"run", kFirst}).out;
  EXPECT_NE(too_wide(piped, 80), "");
  EXPECT_TRUE(test::lacks(piped, "\033", "Left out"));
}

TEST(Terminal, AWideTerminalShowsWhatAPipeDoes) {
  const std::string wide = run_on_terminal({"run", kFirst}, 200).out;
  EXPECT_EQ(without_codes(wide), test::syncline_run({"run", kFirst}).out);
}

TEST(Terminal, ColumnsOfTheEnvironmentGoFirst) {
  const auto ran = run_on_terminal({"run", kFirst}, 200, {{"COLUMNS", "70"}});
  EXPECT_EQ(too_wide(ran.out, 70), "");
  EXPECT_TRUE(test::says(ran.out, "Left out at 70 columns: "));
}

// The columns are left out in the order that grid.h states.
TEST(Terminal, TheStepAndTheGainStayLongest) {
  const std::string out = without_codes(run_on_terminal({"run", kFirst}, 80).out);
  EXPECT_TRUE(test::says(out, "strategy", "time", "all at the end", "interval"));
  EXPECT_TRUE(test::says(out, "exposed", "60.63 ms  58.3 to 64.0 ms"));
}

TEST(Terminal, TheWinnerIsHighlighted) {
  const std::string out = run_on_terminal({"run", kFirst}, 120).out;
  EXPECT_TRUE(std::regex_search(out, std::regex("\033\\[1;32m *25  sparse[^\n]*\033\\[0m\n")))
      << out;
  EXPECT_FALSE(std::regex_search(out, std::regex("\033\\[1;32m[^\n]*one by one"))) << out;
}

TEST(Terminal, ColoursAreAskedForOrRefused) {
  const auto coloured = [](const std::string& text) { return contains(text, "\033["); };
  EXPECT_TRUE(coloured(run_on_terminal({"run", kFirst}, 80).out));
  EXPECT_FALSE(coloured(run_on_terminal({"run", kFirst, "--color", "never"}, 80).out));
  EXPECT_FALSE(coloured(run_on_terminal({"run", kFirst}, 80, {{"NO_COLOR", "1"}}).out));
  EXPECT_FALSE(coloured(run_on_terminal({"run", kFirst}, 80, {{"TERM", "dumb"}}).out));
  const std::string asked = test::syncline_run({"run", kFirst, "--color=always"}).out;
  EXPECT_TRUE(coloured(asked));
  EXPECT_EQ(without_codes(asked), test::syncline_run({"run", kFirst}).out);
  for (const char* format : {"markdown", "csv", "json"}) {
    const std::vector<std::string> words{"run", kFirst, "--color=always", "--format", format};
    EXPECT_FALSE(coloured(test::syncline_run(words).out)) << format;
  }
  EXPECT_EQ(test::syncline_run({"run", kFirst, "--color", "blue"}).code, 2);
}

TEST(Terminal, FilesHaveNoneOfIt) {
  const test::Scratch scratch;
  const std::string folder = scratch.path("out");
  const auto ran = run_on_terminal({"run", kFirst, "--color=always", "--out", folder}, 80);
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(test::text_of(folder + "/report.txt"),
            test::syncline_run({"run", kFirst, "--verbose"}).out);
}

// Names of others may hold codes of their own: those never reach the terminal.
TEST(Terminal, NamesBringNoCodes) {
  const test::Scratch scratch;
  std::string text = test::text_of(kFirst);
  const std::string name = "\"one by one\"";
  text.replace(text.find(name), name.size(), "\"one\\u001b[31m by one\"");
  test::write_text(scratch.path("x.json"), text);
  for (const char* verb : {"run", "explain", "check", "plan", "buckets"}) {
    const std::string out = run_on_terminal({verb, scratch.path("x.json")}, 80).out;
    EXPECT_TRUE(test::lacks(out, "\033[31m")) << verb;
  }
}

// A pipe without a writer is waited for, five seconds long.
TEST(Terminal, LongSilenceIsBroken) {
  const test::Scratch scratch;
  const std::string pipe = scratch.path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const std::string watched = run_on_terminal({"run", pipe}, 80, {}, true).out;
  EXPECT_TRUE(test::says(watched, "syncline run: 3 s so far"));
  EXPECT_TRUE(test::says(watched, "\033[Ksyncline: " + pipe + ": a pipe")) << "the line stays";
  EXPECT_TRUE(test::lacks(run_on_terminal({"run", pipe}, 80).err, "so far")) << "a file's reader";
}

// What long work says of itself where nobody watches: one line, by what its first pieces took.

Progress::Clock::time_point moment;

Progress::Clock::time_point fake_clock() { return moment; }

// Standard error is a file here.
std::string told_of(std::size_t wanted) {
  testing::internal::CaptureStderr();
  {
    Progress progress("syncline run", fake_clock);
    for (std::size_t done = 1; done <= wanted && done < 100; ++done) {
      moment += std::chrono::milliseconds(100);
      progress.update(done, wanted);
    }
  }
  return testing::internal::GetCapturedStderr();
}

TEST(Progress, LongWorkSaysOnceHowLongItWillTake) {
  EXPECT_EQ(told_of(10'000), "syncline run: 20 of 10000, about 998 s left\n");
}

// A start of a minute is no measure of the pieces that follow it.
TEST(Progress, TimeLeftDoesNotCountTheStart) {
  testing::internal::CaptureStderr();
  {
    Progress progress("syncline run", fake_clock);
    moment += std::chrono::seconds(60);
    for (std::size_t done = 1; done < 30; ++done) {
      progress.update(done, 10'000);
      moment += std::chrono::milliseconds(100);
    }
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "syncline run: 11 of 10000, about 999 s left\n");
}

// Nor is a second piece that waits for what all others share.
TEST(Progress, TimeLeftIsByTheLaterHalf) {
  testing::internal::CaptureStderr();
  {
    Progress progress("syncline run", fake_clock);
    progress.update(1, 100'000);
    moment += std::chrono::seconds(60);
    for (std::size_t done = 2; done < 100; ++done) {
      progress.update(done, 100'000);
      moment += std::chrono::milliseconds(1);
    }
    moment += std::chrono::seconds(1);
    progress.update(100, 100'000);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "syncline run: 7 of 100000, about 100 s left\n");
}

TEST(Progress, IsSilentInTheFirstMinute) { EXPECT_EQ(told_of(500), ""); }

}  // namespace
}  // namespace syncline::cli
