// `calibrate --kernels` as a user calls it.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cli/verbs.h"
#include "core/input/document.h"
#include "core/json/text.h"
#include "tests/support/said.h"
#include "tests/support/scratch.h"

namespace syncline::cli {
namespace {

using test::scratch;

using test::Said;
using test::say;

std::string in_scratch(const std::string& name) { return scratch().path(name); }

std::string written(const std::string& name, const std::string& text) {
  std::ofstream(in_scratch(name)) << text;
  return in_scratch(name);
}

const std::string kCluster =
    std::string(SYNCLINE_SOURCE_DIR) + "/scenarios/clusters/v100_4x8_100g.json";

// 100 M elements at 2 TB/s.
std::string measured() {
  return written("gpu.json", R"({"format": "syncline gpu-check 1", "rehearsal": false,
    "machine": {"name": "a GPU"}, "launch": {"submit_us": 3, "gap_us": 1},
    "timings": [{"case": "pack fp32", "kind": "pack", "elements": 100000000,
                 "counted_bytes": 800000000, "us": 400}]})");
}

TEST(CalibrateKernels, WritesTheDeviceOfACluster) {
  const std::string out = in_scratch("with_kernels.json");
  const Said said = say({"calibrate", "--kernels", measured(), "--cluster", kCluster, "-o", out});
  ASSERT_EQ(said.code, 0) << said.err;
  EXPECT_NE(said.out.find("memory_gbytes_per_s = 2000"), std::string::npos) << said.out;
  EXPECT_NE(said.out.find("pack fp32"), std::string::npos);
  const Json made = read_json_file(out);
  EXPECT_EQ(made.at("device").at("memory_gbytes_per_s"), 2000);
  EXPECT_EQ(made.at("device").at("launch_us"), 3);
  EXPECT_EQ(made.at("device").at("host_sync_us"), 20);  // as it was
  EXPECT_EQ(made.at("inter"), read_json_file(kCluster).at("inter"));
}

TEST(CalibrateKernels, JoinsLogsToo) {
  const std::string log = std::string(SYNCLINE_SOURCE_DIR) +
                          "/scenarios/measured/nccl-tests/"
                          "a100pcie-ib-gdr_allreduce_medium_n002x1.txt";
  const std::string out = in_scratch("logs_and_kernels.json");
  const Said said = say({"calibrate", log, "--kernels", measured(), "-o", out});
  ASSERT_EQ(said.code, 0) << said.err;
  const Json made = read_json_file(out);
  EXPECT_TRUE(made.contains("calibration"));
  EXPECT_EQ(made.at("device").at("memory_gbytes_per_s"), 2000);
}

TEST(CalibrateKernels, SaysWhatIsMissing) {
  const Said nothing = say({"calibrate"});
  EXPECT_EQ(nothing.code, 2);
  EXPECT_NE(nothing.err.find("logs: expected at least one"), std::string::npos) << nothing.err;
  const Said nowhere = say({"calibrate", "--kernels", measured()});
  EXPECT_EQ(nowhere.code, 2);
  EXPECT_NE(nowhere.err.find("--cluster"), std::string::npos) << nowhere.err;
  const Said missing = say({"calibrate", "--kernels", "/no/file.json", "--cluster", kCluster});
  EXPECT_EQ(missing.code, 2);
  EXPECT_NE(missing.err.find("/no/file.json"), std::string::npos) << missing.err;
}

}  // namespace
}  // namespace syncline::cli
