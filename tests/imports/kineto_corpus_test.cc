// What the fuzzer begins with and what it found worth keeping, read by every build.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/jobs.h"

namespace syncline::job::kineto {
namespace {

TEST(KinetoCorpus, EveryInputIsReadOrRefused) {
  const auto folder = std::filesystem::path(SYNCLINE_SOURCE_DIR) / "tests/fuzz/corpus/kineto";
  int read = 0;
  int refused = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    try {
      const Observed observed = kFormat.read({entry.path().string()});
      for (const Step& step : observed.ranks.at(0).steps) {
        EXPECT_NEAR(test::sum_of(step), step.gpu, 1e-9 * (1 + step.gpu)) << entry.path();
        EXPECT_FALSE(step.gradients.empty());
      }
      ++read;
    } catch (const InputError& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with(entry.path().string()));
      ++refused;
    }
  }
  EXPECT_GE(read, 6);
  EXPECT_GE(refused, 6);
}

}  // namespace
}  // namespace syncline::job::kineto
