// What is typed wrong on the command line is told in the words of whoever typed it.
#include <gtest/gtest.h>

#include "tests/support/program.h"
#include "tests/support/text.h"

namespace syncline::cli {
namespace {

using test::contains;

const std::string kFirst = SYNCLINE_SOURCE_DIR "/scenarios/first.json";

std::string refusal(const std::vector<std::string>& arguments) {
  const auto ran = test::syncline_run(arguments);
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(ran.out, "");
  return ran.err;
}

TEST(Messages, ABudgetBelowZero) {
  const std::string text = refusal({"tune", kFirst, "--budget", "-5"});
  EXPECT_TRUE(contains(text, "--budget: found -5, expected 0 or more")) << text;
  EXPECT_LT(text.size(), 120U) << text;
}

TEST(Messages, TheNearestOptionIsNamed) {
  EXPECT_EQ(refusal({"run", kFirst, "--fromat", "json"}),
            "syncline: unknown option '--fromat' (did you mean '--format'?); see syncline run "
            "--help\n");
  EXPECT_TRUE(contains(refusal({"run", kFirst, "--fromat=json"}), "'--fromat'"));
  EXPECT_TRUE(contains(refusal({"run", kFirst, "left over"}), "left over"));
}

TEST(Messages, StrategiesAreQuoted) {
  const std::string text = refusal({"explain", kFirst, "--strategy", "nothing like it"});
  EXPECT_TRUE(contains(text, "; it has '")) << text;
  EXPECT_TRUE(contains(text, "', '")) << text;
}

TEST(Messages, AGuideIsReadBeforeAnyWork) {
  const std::string text = refusal({"tune", SYNCLINE_SOURCE_DIR "/scenarios/live/tune_2x1gbit.json",
                                    "--live", "emulated", "--wrong", "latency"});
  EXPECT_TRUE(text.starts_with("syncline: --wrong: found 'latency'")) << text;
}

TEST(Messages, EmitOffersWhatItCanWrite) {
  const std::string text = refusal({"emit", kFirst, "--dialect", "paddle_dygraph"});
  EXPECT_TRUE(contains(text, "paddle_dygraph not in {")) << text;
  EXPECT_FALSE(contains(test::syncline_run({"emit", "--help"}).out, "paddle_dygraph"));
}

}  // namespace
}  // namespace syncline::cli
