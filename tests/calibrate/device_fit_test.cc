// What a device reaches, from a backward pass or a throughput measured on one GPU.
#include "studies/calibrate/device_fit.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <tuple>

#include "core/base/error.h"
#include "formats/input/document.h"
#include "formats/input/read_cluster.h"
#include "formats/input/read_workload.h"
#include "formats/json/reader.h"
#include "formats/json/text.h"
#include "tests/support/expect.h"
#include "tests/support/text.h"

namespace syncline::calibrate {
namespace {

const std::string kScenarios = std::string(SYNCLINE_SOURCE_DIR) + "/scenarios/";

Json two_layers() {
  return {
      {"name", "two"},
      {"batch", 4},
      {"backward_ms", 999},
      {"tensors",
       {{{"name", "b"}, {"shape", {100}}, {"forward_flops", 1e9}, {"backward_flops", 2e9}},
        {{"name", "a"}, {"shape", {10, 20}}, {"forward_flops", 2e9}, {"backward_flops", 6e9}}}}};
}

const char* const kTrace = "# made up\nwait_us,bytes\n1000,400\n3000,800\n";

TEST(DeviceFit, RateOfATraceIsItsFlopsOverItsTime) {
  const auto fit =
      device_from_trace(two_layers(), "w.json", trace_from_text("t.csv", kTrace), "t.csv");
  EXPECT_NEAR(fit.flops, 8e9 / 4e-3, 1);
  EXPECT_NEAR(*fit.launch, 1e-3, 1e-12);
  EXPECT_NEAR(*fit.worst_place, 0, 1e-12);  // waits in proportion to FLOPs
  EXPECT_NEAR(device_json(fit).at("tflops").get<double>(), 2, 1e-4);
}

TEST(DeviceFit, RateOfAThroughputIsOfBothPasses) {
  const auto fit = device_from_throughput(two_layers(), "w.json", 8);  // a step of half a second
  EXPECT_NEAR(fit.flops, 11e9 / 0.5, 1);
  EXPECT_FALSE(device_json(fit).contains("launch_us"));
}

// The published traces: the device that is found takes the whole pass as long as was measured, on
// the workload without its times.
TEST(DeviceFit, MeasuredPassesComeOut) {
  struct Known {
    const char* trace;
    const char* workload;
    double milliseconds;  // the sum of the waits
    double worst_place;
  };
  for (const Known& known : {Known{"resnet50", "resnet50_v100", 64.8066, 0.15},
                             {"resnet101", "resnet101_v100", 106.407, 0.15},
                             {"vgg16", "vgg16_bn_v100", 111.620, 0.30}}) {
    const std::string file = kScenarios + "workloads/" + known.workload + ".json";
    Json workload = read_json_file(file);
    const std::string trace =
        kScenarios + "measured/traces/v100_bs32_backward_" + known.trace + ".csv";
    const auto fit = device_from_trace(workload, file, read_trace(trace), trace);
    EXPECT_GT(fit.flops, 5e12) << known.trace;
    EXPECT_LT(fit.flops, 20e12) << known.trace;
    EXPECT_GT(*fit.launch, 1e-6);
    EXPECT_LT(*fit.launch, 50e-6);
    EXPECT_LT(*fit.worst_place, known.worst_place) << known.trace;
    for (Json& tensor : workload["tensors"]) tensor.erase("backward_us");
    Cluster cluster;
    Device& device = cluster.device;
    device.flops = device_json(fit).at("tflops").get<double>() * 1e12;
    const Workload evaluated = input::read_workload(Reader(workload, file, ""), cluster);
    EXPECT_NEAR(backward_time(evaluated) / (known.milliseconds * 1e-3), 1, 1e-4) << known.trace;
  }
}

TEST(DeviceFit, RefusesWhatDoesNotBelongTogether) {
  const auto fit = [](const Json& layers, const std::string& text) {
    return device_from_trace(layers, "w.json", trace_from_text("t.csv", text), "t.csv");
  };
  for (const char* text :
       {"", "# only a remark\n", "wait_us,bytes\n", "bytes,wait_us\n1,400\n",
        "wait_us,bytes\n1000,400\n",            // a gradient too few
        "wait_us,bytes\n1000,400\n3000,808\n",  // another tensor
        "wait_us,bytes\n1000,400\n-1,800\n", "wait_us,bytes\n1000,400\nnan,800\n",
        "wait_us,bytes\n1000,400\n3000\n", "wait_us,bytes\n0,400\n0,800\n"}) {
    EXPECT_THROW(fit(two_layers(), text), InputError) << text;
  }
  Json bare = two_layers();
  for (Json& tensor : bare["tensors"]) tensor.erase("backward_flops");
  EXPECT_THROW(fit(bare, kTrace), InputError);
  bare = two_layers();
  for (Json& tensor : bare["tensors"]) tensor.erase("forward_flops");
  EXPECT_THROW(device_from_throughput(bare, "w.json", 8), InputError);
  EXPECT_THROW(device_from_throughput(Json::array(), "w.json", 8), InputError);
}

// What make gpu-check wrote, as a device: rates from a file written by hand, and files that do not
// do.

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
  EXPECT_NEAR(costs.evaluated_seconds(costs.timings[1]), 800e6 / 3e12, 1e-9);
}

TEST(KernelCosts, KernelsInTheCacheAreShownAndNotFitted) {
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
  const std::string error = test::input_error([&] { kernel_costs(json, "gpu.json"); });
  EXPECT_TRUE(test::contains(error, "gpu.json: rehearsal")) << error;
  EXPECT_TRUE(test::contains(error, "made up")) << error;
}

TEST(KernelCosts, OtherFilesAreRefusedByNameAndPlace) {
  const std::tuple<const char*, Json, const char*> mistakes[] = {
      {"format", "something", "format"},
      {"launch", nullptr, "launch"},
      {"launch", {{"submit_us", -1}, {"gap_us", 1}}, "submit_us"},
      {"timings", Json::array(), "timings"},
      {"timings", {{{"case", "x"}, {"kind", "pack"}, {"counted_bytes", 1e9}, {"us", 0}}}, "us"}};
  for (const auto& [key, value, word] : mistakes) {
    Json json = check();
    json[key] = value;
    const std::string error = test::input_error([&] { kernel_costs(json, "gpu.json"); });
    EXPECT_TRUE(test::contains(error, word)) << key << ": " << error;
  }
  EXPECT_THROW(kernel_costs(Json::array(), "gpu.json"), InputError);
  Json wrong = cluster();
  wrong["nodes"] = 0;
  EXPECT_THROW(with_kernel_costs(wrong, "c.json", kernel_costs(check(), "gpu.json")), InputError);
}

}  // namespace
}  // namespace syncline::calibrate
