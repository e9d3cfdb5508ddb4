// `syncline init` writes what `run` and `tune` take as it is, and says what it assumed.
#include <gtest/gtest.h>

#include <sstream>

#include "tests/support/program.h"
#include "tests/support/scratch.h"

namespace syncline::cli {
namespace {

TEST(Init, WritesAScenarioThatRunsAndTunes) {
  const test::Scratch scratch;
  const std::string file = scratch.path("first.json");
  const auto made =
      test::syncline_run({"init", "gpt2_small", "--node", "dgx-a100", "--nodes", "2", "-o", file});
  ASSERT_EQ(made.code, 0) << made.err;
  std::istringstream lines(made.out);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80u + file.size() * (line.find(file) != std::string::npos ? 2 : 0))
        << line;
  }
  EXPECT_NE(made.out.find("Assumed:"), std::string::npos);
  const auto ran = test::syncline_run({"run", file});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.out.find("DDP's default"), std::string::npos);
  EXPECT_NE(ran.out.find("cluster.node dgx-a100: links as rated"), std::string::npos) << ran.out;
  const auto tuned = test::syncline_run({"tune", file});
  EXPECT_EQ(tuned.code, 0) << tuned.err;
}

// Without a file the scenario is all that stdout has.
TEST(Init, PrintsTheScenarioAlone) {
  const auto made = test::syncline_run({"init", "resnet50", "--node", "g4dn.12xlarge"});
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_TRUE(made.out.starts_with("{\n"));
  EXPECT_TRUE(made.out.ends_with("}\n"));
  EXPECT_NE(made.err.find("Assumed:"), std::string::npos);
}

TEST(Init, WrongNamesWriteNothing) {
  const test::Scratch scratch;
  const std::string file = scratch.path("none.json");
  EXPECT_EQ(test::syncline_run({"init", "gpt2_smal", "--node", "dgx-a100", "-o", file}).code, 2);
  EXPECT_EQ(test::syncline_run({"init", "gpt2_small", "--node", "dgx", "-o", file}).code, 2);
  EXPECT_EQ(test::syncline_run({"init", "gpt2_small"}).code, 2);
  EXPECT_EQ(
      test::syncline_run({"init", "gpt2_small", "--node", "dgx-a100", "--dtype", "int8"}).code, 2);
  EXPECT_EQ(test::syncline_run({"run", file}).code, 2);
}

}  // namespace
}  // namespace syncline::cli
