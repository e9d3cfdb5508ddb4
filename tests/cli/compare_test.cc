// Two commands in turns: what is read of their output, the interval, and what is said of failures.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/modules/step_log.h"
#include "core/base/error.h"
#include "tests/support/expect.h"
#include "tests/support/program.h"

namespace syncline::cli {
namespace {

using cli::find_step_time;

TEST(Compare, ReadsStepTimesAsFrameworksPrintThem) {
  for (const auto& [line, seconds] : std::vector<std::pair<std::string, Seconds>>{
           {" iteration 5/ 10 | elapsed time per iteration (ms): 250.5 | loss", 0.2505},
           {"INFO:root:step time: 798.96 ms", 0.79896},
           {"step_time=1.5s loss 3", 1.5},
           {"12%| 3/25 [00:04<00:29, 1.25s/it]", 1.25},
           {"12%| 3/25 [00:04<00:29, 4.00it/s, loss=2]", 0.25},
           {"[titan] step: 10 tps: 8,000 mfu: 40%", 1 / 8000.0},
           {"Epoch 1: 640.0 images/sec", 1 / 640.0}}) {
    ASSERT_TRUE(find_step_time(line, "", false).has_value()) << line;
    EXPECT_DOUBLE_EQ(*find_step_time(line, "", false), seconds) << line;
  }
  EXPECT_FALSE(find_step_time("loss 3.2\nlr 0.1\n", "", false).has_value());
}

// The first quarter of the steps does not count, of the others the middle one does.
TEST(Compare, TakesTheMedianOfWhatHasSettled) {
  std::string output;
  for (const char* ms : {"900", "800", "12", "10", "11", "10", "9", "10"}) {
    output += std::string("step time: ") + ms + " ms\r";
  }
  EXPECT_DOUBLE_EQ(*find_step_time(output, "", false), 0.010);
}

TEST(Compare, TakesAnExpressionOfTheUsers) {
  EXPECT_DOUBLE_EQ(*find_step_time("took 3.5 (own words)\n", "took ([0-9.]+)", false), 3.5);
  EXPECT_DOUBLE_EQ(*find_step_time("speed 4\n", "speed ([0-9.]+)", true), 0.25);
  EXPECT_THROW(find_step_time("x", "took [0-9]+", false), InputError);
  EXPECT_THROW(find_step_time("x", "took ([0-9", false), InputError);
}

test::Ran compared(const std::string& first, const std::string& second,
                   const std::vector<std::string>& more = {}) {
  return test::syncline_run(test::joined({"compare", first, second}, more));
}

// Ratios of 2 and 8 are 4 in the mean, give or take 12.706 standard errors of log 4 / 2.
TEST(Compare, TheIntervalIsStudentsOverTheRounds) {
  test::Scratch scratch;
  const std::string log = scratch.path("log");
  const std::string first =
      "[ -e " + log + " ] && ms=8 || ms=2; touch " + log + "; echo step time: $ms ms";
  const auto two = nlohmann::json::parse(
      compared(first, "echo step time: 1 ms", {"--rounds", "2", "--format", "json"}).out);
  EXPECT_NEAR(two.at("speedup").get<double>(), 4, 1e-12);
  const double half = 12.7062047 * std::log(4.0) / 2;
  EXPECT_NEAR(two.at("speedup_interval")[0].get<double>(), 4 * std::exp(-half), 1e-6);
  EXPECT_NEAR(std::log(two.at("speedup_interval")[1].get<double>()), std::log(4.0) + half, 1e-6);
  const auto one = compared("true", "true", {"--rounds", "1", "--format", "json"});
  EXPECT_FALSE(nlohmann::json::parse(one.out).contains("speedup_interval"));
}

// Each round has both, and begins with the other one.
TEST(Compare, RunsTheCommandsInTurns) {
  test::Scratch scratch;
  const std::string log = scratch.path("log");
  const auto ran = compared("echo first >>" + log + "; echo step time: 20 ms",
                            "echo second >>" + log + "; echo step time: 10 ms",
                            {"--rounds", "3", "--format", "json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(test::text_of(log), "first\nsecond\nsecond\nfirst\nfirst\nsecond\n");
  const auto json = nlohmann::json::parse(ran.out);
  EXPECT_EQ(json.at("of"), "steps");
  EXPECT_DOUBLE_EQ(json.at("speedup").get<double>(), 2);
  EXPECT_EQ(json.at("rows").size(), 3u);
}

TEST(Compare, TheVerdictIsFirst) {
  const auto ran = compared("echo step time: 20 ms", "echo step time: 10 ms", {"--rounds", "2"});
  EXPECT_TRUE(test::says(ran.out, "The second is faster: 2"));
  const auto same = compared("echo step time: 20 ms", "echo step time: 20 ms", {"--rounds", "2"});
  EXPECT_TRUE(test::says(same.out, "Not decided by 2 rounds"));
  const auto whole = compared("true", "echo no times", {"--rounds", "2"});
  EXPECT_TRUE(test::says(whole.out, "its output names no step times"));
}

TEST(Compare, FailuresAreReportedWithTheirOutput) {
  const auto failed = compared("true", "echo out of memory; exit 7");
  EXPECT_EQ(failed.code, 3);
  EXPECT_TRUE(test::says(failed.err, "ended with 7", "out of memory"));
  test::Scratch scratch;
  const std::string never = scratch.path("never");
  const auto wrong = compared("touch " + never, "true", {"--figure", "took ([0-9"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_FALSE(std::filesystem::exists(never));  // told before the first run
  EXPECT_TRUE(
      test::refused(compared("true", "true", {"--figure", "took ([0-9]+)"}), "finds nothing"));
}

// What was measured until then is the answer: one round, as the third run does this instead.
void expect_one_round(const std::string& end, int code, const std::string& said) {
  test::Scratch scratch;
  const std::string log = scratch.path("log");
  const std::string command = "echo step time: 5 ms; echo . >>" + log + "; [ $(wc -l <" + log +
                              ") -le 2 ] || { " + end + "; }";
  const auto ran = compared(command, command, {"--rounds", "9", "--format", "json"});
  EXPECT_TRUE(test::failed(ran, code, said));
  const auto json = nlohmann::json::parse(ran.out);
  EXPECT_EQ(json.at("rows").size(), 1u);
  EXPECT_FALSE(json.at("complete").get<bool>());
}

TEST(Compare, AFailureKeepsTheRoundsBeforeIt) {
  expect_one_round("echo lost a rank; exit 9", 3, "lost a rank");
}

TEST(Compare, CtrlCKeepsTheRoundsThatAreComplete) {
  expect_one_round("kill -INT $PPID; sleep 60", 130, "");
}

}  // namespace
}  // namespace syncline::cli
