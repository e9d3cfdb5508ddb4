// `make gpu-check` without a GPU: its rehearsal runs the references, the checks (and kernels that
// are wrong on purpose), the statistics, the table and the JSON on the CPU.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "core/calibrate/device_fit.h"
#include "core/error.h"
#include "core/input/document.h"
#include "core/json/text.h"

namespace syncline::kernels {
namespace {

const std::string kRoot = SYNCLINE_SOURCE_DIR;

struct Ran {
  int code = -1;
  std::string out;
};

Ran shell(const std::string& command) {
  Ran ran;
  FILE* pipe = popen(command.c_str(), "r");
  char block[4096];
  while (std::size_t got = std::fread(block, 1, sizeof block, pipe)) ran.out.append(block, got);
  const int status = pclose(pipe);
  ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ran;
}

// Python with numpy: the first of these that has both. Empty: none has.
std::string python() {
  for (const std::string candidate : {"python3", "/usr/bin/python3"}) {
    if (shell(candidate + " -c 'import numpy' 2>/dev/null").code == 0) return candidate;
  }
  return "";
}

class GpuCheck : public testing::Test {
 protected:
  void SetUp() override {
    python_ = python();
    if (python_.empty()) {
      GTEST_SKIP() << "no python3 with numpy: the rehearsal of make gpu-check is not run";
    }
    out_ = (std::filesystem::path(testing::TempDir()) / "gpu_check.json").string();
  }

  Ran run(const std::string& options) const {
    return shell("cd / && " + python_ + " '" + kRoot + "/kernels/bench/run.py' --no-build --out '" +
                 out_ + "' " + options + " 2>&1");
  }

  std::string python_;
  std::string out_;
};

TEST_F(GpuCheck, TheRehearsalPassesAndSaysThatItIsOne) {
  const Ran ran = run("--rehearse");
  EXPECT_EQ(ran.code, 0) << ran.out;
  EXPECT_NE(ran.out.find("REHEARSAL: every time above is made up"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("% of ceiling"), std::string::npos);
  EXPECT_NE(ran.out.find("did not run: this is a rehearsal"), std::string::npos);
  EXPECT_NE(ran.out.find(" 0 failed."), std::string::npos);

  const Json json = read_json_file(out_);
  EXPECT_EQ(json.at("rehearsal"), true);
  EXPECT_GT(json.at("checks").size(), 90U);
  int found_out = 0;
  for (const auto& check : json.at("checks")) {
    EXPECT_EQ(check.at("passed"), true) << check;
    const std::string name = check.at("name");
    if (name.find("is found out") != std::string::npos) ++found_out;
  }
  EXPECT_EQ(found_out, 3);  // kernels that are wrong on purpose
  for (const auto& row : json.at("timings")) {
    EXPECT_EQ(row.at("rehearsal"), true);
    const double low = row.at("ratio_low");
    const double high = row.at("ratio_high");
    EXPECT_LE(low, row.at("ratio"));
    EXPECT_GE(high, row.at("ratio"));
    EXPECT_EQ(row.at("verdict"), low > 1.02 ? "faster" : high < 1 / 1.02 ? "slower" : "tie");
    // A peer that did not run is a sentence, never a gap.
    for (const auto& peer : row.at("peers")) {
      EXPECT_TRUE(!peer.at("us").is_null() || !peer.at("note").get<std::string>().empty());
    }
  }
  // Made-up times must not get into a cluster.
  EXPECT_THROW(calibrate::kernel_costs(json, out_), InputError);
}

TEST_F(GpuCheck, WithoutAGpuItSaysSoAndDoesNotPass) {
  // Whatever GPU there is, it is hidden.
  const Ran ran = shell("cd / && CUDA_VISIBLE_DEVICES= " + python_ + " '" + kRoot +
                        "/kernels/bench/run.py' --no-build --out '" + out_ + "' 2>&1");
  EXPECT_EQ(ran.code, 3) << ran.out;
  EXPECT_NE(ran.out.find("No GPU was used, nothing was measured:"), std::string::npos) << ran.out;
  const Json json = read_json_file(out_);
  EXPECT_EQ(json.at("timings").size(), 0U);
  EXPECT_THROW(calibrate::kernel_costs(json, out_), InputError);
}

}  // namespace
}  // namespace syncline::kernels
