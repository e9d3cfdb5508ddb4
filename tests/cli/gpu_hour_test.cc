// make gpu-hour without a GPU: what it says, and what it leaves behind, where parts fail.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/expect.h"
#include "tests/support/program.h"
#include "tests/support/scratch.h"

namespace syncline::cli {
namespace {

using test::Scratch;

void write_script(const std::string& path, const std::string& text) {
  std::ofstream(path) << "#!/bin/sh\n" << text << "\n";
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
}

// With programs of that name in front of the machine's own.
test::Ran hour(const Scratch& scratch, const std::string& options) {
  return test::shell("PATH='" + scratch.path("") + "':$PATH PYTHONDONTWRITEBYTECODE=1 SYNCLINE='" +
                     SYNCLINE_BINARY "' SYNCLINE_GPU_CHECK='" + scratch.path("gpu_check") +
                     "' python3 '" SYNCLINE_SOURCE_DIR "/scenarios/gpu/hour.py' --out '" +
                     scratch.path("hour") + "' " + options);
}

nlohmann::json said(const Scratch& scratch) {
  std::ifstream file(scratch.path("hour/hour.json"));
  return nlohmann::json::parse(file);
}

TEST(GpuHour, SaysThatThereIsNoGpu) {
  const Scratch scratch;
  write_script(scratch.path("nvidia-smi"), "exit 9");
  const auto ran = hour(scratch, "");
  EXPECT_EQ(ran.code, 3);
  EXPECT_TRUE(test::says(ran.out, "no GPU: nvidia-smi finds none"));
  EXPECT_EQ(said(scratch)["parts"][0]["state"], "failed");
}

// A part that fails is told in a line; the others are done, and what was predicted is there.
TEST(GpuHour, GoesOnAfterAPartThatFails) {
  const Scratch scratch;
  write_script(scratch.path("nvidia-smi"), "echo NVIDIA H200");
  write_script(scratch.path("gpu_check"),
               "echo 'FAILED  a kernel'; echo '2 cases, 1 failed'; exit 1");
  const auto ran = hour(scratch, "--seconds 60 --parts kernels steps");
  EXPECT_EQ(ran.code, 1) << ran.out << ran.err;
  EXPECT_TRUE(
      test::says(ran.out, "kernels: failed after 0 s: gpu_check ended with 1: 2 cases, 1 failed"));
  const auto parts = said(scratch)["parts"];
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[1]["part"], "steps");
  const auto check = test::shell("'" SYNCLINE_BINARY "' check '" +
                                 scratch.path("hour/published/gpu/h200_steps.json") + "'");
  EXPECT_EQ(check.code, 0) << check.err;
  std::ifstream predicted(scratch.path("hour/steps_predicted.json"));
  EXPECT_GT(nlohmann::json::parse(predicted).size(), 15U);
}

TEST(GpuHour, IsDoneWhenAllPartsAre) {
  const Scratch scratch;
  write_script(scratch.path("nvidia-smi"), "echo NVIDIA H200");
  write_script(scratch.path("gpu_check"), "echo '2 cases, 0 failed'");
  const auto ran = hour(scratch, "--parts kernels");
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  EXPECT_EQ(said(scratch)["parts"][0]["says"], "2 cases, 0 failed");
  EXPECT_EQ(said(scratch)["gpu"], "NVIDIA H200");
}

}  // namespace
}  // namespace syncline::cli
