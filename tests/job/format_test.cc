#include "core/job/format.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/support/scratch.h"

namespace syncline::job {
namespace {

std::string refusal(const std::vector<std::string>& files) {
  try {
    (void)read_job(files);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Format, ForeignFilesAreRefusedByName) {
  const test::Scratch scratch;
  const std::string path = scratch.path("notes.txt");
  test::write_text(path, "what we did today");
  EXPECT_TRUE(refusal({path}).starts_with(path + ": not a file that a job leaves behind"));
  test::write_text(path, "");
  EXPECT_TRUE(refusal({path}).starts_with(path + ": empty"));
  EXPECT_EQ(refusal({scratch.path("absent")}), scratch.path("absent") + ": no such file");
}

TEST(Format, TheTypicalStepIsTheMedianOne) {
  Rank rank;
  for (const double gpu : {3.0, 1.0, 2.0, 9.0}) rank.steps.emplace_back().gpu = gpu;
  EXPECT_EQ(typical_step(rank).gpu, 2.0);
  rank.steps.resize(1);
  EXPECT_EQ(typical_step(rank).gpu, 3.0);
}

}  // namespace
}  // namespace syncline::job
