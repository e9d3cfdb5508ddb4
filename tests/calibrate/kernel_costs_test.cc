// What make gpu-check wrote, as a device: rates from a file written by hand, and files that do not
// do.
#include "core/calibrate/device_fit.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/input/parts.h"
#include "core/json/reader.h"

namespace syncline::calibrate {
namespace {

constexpr double kElements = 1e8;

Json row(const std::string& name, const std::string& kind, double bytes_an_element, double us) {
  return {{"case", name},
          {"kind", kind},
          {"elements", 100000000},
          {"kept", 100000},
          {"counted_bytes", bytes_an_element * kElements},
          {"us", us}};
}

// DGC is evaluated at 24 bytes an element and 8 for each of 100,000 kept, and took 24.008 e8 / 4e12
// s; pack reaches 4 TB/s too; updates reach 2 and 2.
Json check() {
  return {
      {"format", "syncline gpu-check 1"},
      {"rehearsal", false},
      {"machine", {{"name", "NVIDIA H200"}, {"date", "2026-01-02T03:04:05Z"}, {"git", nullptr}}},
      {"launch", {{"submit_us", 2.5}, {"gap_us", 1.25}}},
      {"timings",
       {row("dgc", "dgc_step", 20, 2400.8e6 / 4e6),
        row("pack", "pack", 8, 800e6 / 4e6),
        row("sgd", "update", 12, 1200e6 / 2e6),
        row("adam", "update", 28, 2800e6 / 2e6),
        row("apply", "sparse_apply", 0.576, 50),
        {{"case", "lost"}, {"kind", "pack"}, {"failed", "no time left of the budget"}}}}};
}

Json cluster() {
  return {{"name", "mine"},
          {"nodes", 2},
          {"gpus_per_node", 1},
          {"inter", {{"latency_us", 10}, {"bandwidth_gbps", 100}}},
          {"device", {{"tflops", 100}, {"launch_us", 9}, {"host_sync_us", 20}}}};
}

TEST(KernelCosts, OneRateIsTheHarmonicMeanOverKinds) {
  const KernelCosts costs = kernel_costs(check(), "gpu.json");
  EXPECT_EQ(costs.gpu, "NVIDIA H200");
  EXPECT_DOUBLE_EQ(costs.launch, 2.5e-6);
  EXPECT_DOUBLE_EQ(costs.kernel_gap, 1.25e-6);
  // 3 / (1/4 + 1/4 + 1/2) TB/s.
  EXPECT_NEAR(costs.memory, 3e12, 1e3);
  ASSERT_EQ(costs.timings.size(), 5U);  // what failed is no timing
  EXPECT_FALSE(costs.timings.back().fitted);
  EXPECT_NEAR(costs.evaluated(costs.timings[1]), 800e6 / 3e12, 1e-9);
}

TEST(KernelCosts, WhatFitsIntoACacheIsShownAndNotFitted) {
  Json json = check();
  json["timings"].push_back({{"case", "small"},
                             {"kind", "pack"},
                             {"elements", 1000000},
                             {"counted_bytes", 8e6},
                             {"us", 0.5}});
  const KernelCosts costs = kernel_costs(json, "gpu.json");
  EXPECT_NEAR(costs.memory, 3e12, 1e3);
  EXPECT_EQ(costs.timings.size(), 6U);
}

TEST(KernelCosts, TheClusterKeepsWhatWasNotMeasured) {
  const Json made = with_kernel_costs(cluster(), "c.json", kernel_costs(check(), "gpu.json"));
  const Cluster read = input::read_cluster(Reader(made, "c.json", ""));
  EXPECT_NEAR(read.device.memory, 3e12, 1e8);
  EXPECT_DOUBLE_EQ(read.device.launch, 2.5e-6);
  EXPECT_DOUBLE_EQ(read.device.kernel_gap, 1.25e-6);
  EXPECT_DOUBLE_EQ(read.device.host_sync, 20e-6);
  EXPECT_DOUBLE_EQ(read.device.flops, 100e12);
  EXPECT_EQ(read.device.name, "NVIDIA H200");
  EXPECT_NE(read.source.find("gpu-check on NVIDIA H200, 2026-01-02"), std::string::npos);
}

// What was not measured is the named device's, and its node's source stays.
TEST(KernelCosts, HardwareByNameKeepsWhatWasNotMeasured) {
  const KernelCosts costs = kernel_costs(check(), "gpu.json");
  const Json device = {{"name", "c"}, {"nodes", 1}, {"gpus_per_node", 1}, {"device", "h200-sxm"}};
  const Json node = {{"node", "dgx-h200"}, {"nodes", 2}};
  for (const Json& named : {device, node}) {
    const Cluster before = input::read_cluster(Reader(named, "c.json", ""));
    const Cluster read =
        input::read_cluster(Reader(with_kernel_costs(named, "c.json", costs), "c.json", ""));
    EXPECT_NEAR(read.device.memory, 3e12, 1e8);
    EXPECT_DOUBLE_EQ(read.device.half_flops, before.device.half_flops);
    EXPECT_TRUE(read.source.starts_with(before.source)) << read.source;
    EXPECT_NE(read.source.find("gpu-check on NVIDIA H200"), std::string::npos);
  }
}

TEST(KernelCosts, ARehearsalIsNoMeasurement) {
  Json json = check();
  json["rehearsal"] = true;
  try {
    kernel_costs(json, "gpu.json");
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("gpu.json: rehearsal"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("made up"), std::string::npos);
  }
}

TEST(KernelCosts, OtherFilesAreRefusedByNameAndPlace) {
  const auto refused = [](const char* key, const Json& value, const char* word) {
    Json json = check();
    json[key] = value;
    try {
      kernel_costs(json, "gpu.json");
      ADD_FAILURE() << key << " was accepted";
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
    }
  };
  refused("format", "something", "format");
  refused("launch", nullptr, "launch");
  refused("launch", {{"submit_us", -1}, {"gap_us", 1}}, "submit_us");
  refused("timings", Json::array(), "timings");
  refused("timings", {{{"case", "x"}, {"kind", "pack"}, {"counted_bytes", 1e9}, {"us", 0}}}, "us");
  EXPECT_THROW(kernel_costs(Json::array(), "gpu.json"), InputError);
  Json wrong = cluster();
  wrong["nodes"] = 0;
  EXPECT_THROW(with_kernel_costs(wrong, "c.json", kernel_costs(check(), "gpu.json")), InputError);
}

}  // namespace
}  // namespace syncline::calibrate
