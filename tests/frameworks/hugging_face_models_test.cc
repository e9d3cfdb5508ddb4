// Models of config.json files as transformers builds them.
#include <gtest/gtest.h>

#include <map>

#include "formats/input/read_workload.h"
#include "formats/json/reader.h"
#include "imports/format.h"
#include "tests/frameworks/facts.h"
#include "tests/support/scratch.h"

namespace syncline::job {
namespace {

Workload workload_of(const Json& json) {
  Cluster cluster;
  cluster.device.flops = cluster.device.half_flops = cluster.device.memory = 1e12;
  return input::read_workload(Reader(json, "w.json", ""), cluster);
}

std::map<std::string, int> shapes_of(const Workload& workload) {
  std::map<std::string, int> shapes;
  for (const Tensor& tensor : workload.tensors) {
    std::string text;
    for (const auto extent : tensor.shape)
      text += (text.empty() ? "" : "x") + std::to_string(extent);
    ++shapes[text];
  }
  return shapes;
}

// Architectures of the catalogue have experts in one tensor, GLM's gates in two, and ViT's three
// products in one, as torchvision has them.
bool same_tensors(const Json& config) {
  const std::string type = config["model_type"];
  return type.find("moe") == type.npos && type != "mixtral" && type != "deepseek_v3" &&
         type != "vit" && !type.starts_with("glm");
}

TEST(HuggingFaceModelsFacts, AreWhatTheReaderMakesOfTheConfigs) {
  for (const test::Facts& facts : test::facts_of("models")) {
    for (const Json& one : facts.cases) {
      SCOPED_TRACE(facts.place(one) + " " + one.at("config").dump());
      const test::Scratch scratch;
      test::write_text(scratch.path("config.json"), one.at("config").dump());
      Workload workload;
      try {
        workload = workload_of(*read_job({scratch.path("config.json")}).workload);
      } catch (const InputError& error) {
        ADD_FAILURE() << error.what();
        continue;
      }
      std::int64_t sum = 0;
      for (const Tensor& tensor : workload.tensors) sum += tensor.elements;
      EXPECT_EQ(sum, one.at("parameters").get<std::int64_t>());
      if (!same_tensors(one.at("config"))) continue;
      EXPECT_EQ(shapes_of(workload), (one.at("shapes").get<std::map<std::string, int>>()));
    }
  }
}

}  // namespace
}  // namespace syncline::job
