// What a device reaches, from a backward pass or a throughput measured on one GPU.
#include "core/calibrate/device_fit.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "core/error.h"
#include "core/input/document.h"
#include "core/input/parts.h"
#include "core/json/reader.h"
#include "core/json/text.h"

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
  const auto refused = [](const std::string& text) {
    EXPECT_THROW(device_from_trace(two_layers(), "w.json", trace_from_text("t.csv", text), "t.csv"),
                 InputError)
        << text;
  };
  refused("");
  refused("# only a remark\n");
  refused("wait_us,bytes\n");
  refused("bytes,wait_us\n1,400\n");
  refused("wait_us,bytes\n1000,400\n");            // a gradient too few
  refused("wait_us,bytes\n1000,400\n3000,808\n");  // another tensor
  refused("wait_us,bytes\n1000,400\n-1,800\n");
  refused("wait_us,bytes\n1000,400\nnan,800\n");
  refused("wait_us,bytes\n1000,400\n3000\n");
  refused("wait_us,bytes\n0,400\n0,800\n");
  Json bare = two_layers();
  for (Json& tensor : bare["tensors"]) tensor.erase("backward_flops");
  EXPECT_THROW(device_from_trace(bare, "w.json", trace_from_text("t.csv", kTrace), "t.csv"),
               InputError);
  bare = two_layers();
  for (Json& tensor : bare["tensors"]) tensor.erase("forward_flops");
  EXPECT_THROW(device_from_throughput(bare, "w.json", 8), InputError);
  EXPECT_THROW(device_from_throughput(Json::array(), "w.json", 8), InputError);
}

}  // namespace
}  // namespace syncline::calibrate
