// All mistakes of a file at once: none hides another, and none makes up one that nobody made.
#include <gtest/gtest.h>

#include <algorithm>

#include "formats/json/reader.h"
#include "tests/support/dice.h"
#include "tests/support/full_scenario.h"
#include "tests/support/text.h"

namespace syncline::input {
namespace {

using Pointer = Json::json_pointer;
using test::contains;
using test::full_scenario;
using test::small_scenario;

std::vector<std::string> mistakes_of(const Json& scenario) {
  try {
    test::parsed(scenario);
    return {};
  } catch (const InputMistakes& error) {
    std::vector<std::string> all{error.what()};
    all.insert(all.end(), error.below.begin(), error.below.end());
    return all;
  } catch (const InputError& error) {
    return {error.what()};
  }
}

std::string together(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines) text += line + "\n";
  return text;
}

TEST(AllMistakes, EachPartTellsItsOwn) {
  Json scenario = full_scenario();
  scenario["name"] = 3;
  scenario["cluster"]["inter"]["bandwidth_gbps"] = -1;
  scenario["cluster"]["device"]["tflops"] = "many";
  scenario["workload"]["tensors"][0]["backward_us"] = "short";
  scenario["workload"]["tensors"][2]["sparse_rows"] = 1.5;
  scenario["strategies"][1]["streams"] = 0;
  scenario["strategies"][2]["colour"] = "red";
  scenario["simulation"]["periods"] = 0;
  scenario["seed"] = -1;
  const auto told = mistakes_of(scenario);
  ASSERT_EQ(told.size(), 9U) << together(told);
  const char* places[] = {"x.json: name: ",
                          "x.json: cluster.inter.bandwidth_gbps: ",
                          "x.json: cluster.device.tflops: ",
                          "x.json: workload.tensors[0].backward_us: ",
                          "x.json: workload.tensors[2].sparse_rows: ",
                          "x.json: strategies[1].streams: ",
                          "x.json: strategies[2].colour: ",
                          "x.json: seed: ",
                          "x.json: simulation.periods: "};
  for (std::size_t i = 0; i < told.size(); ++i) {
    EXPECT_TRUE(told[i].starts_with(places[i])) << told[i];
  }
}

// Neither twice, nor in place of what stands behind it.
TEST(AllMistakes, AWrongVersionIsReportedOnce) {
  for (const Json& torch : {Json(2.7), Json("newest"), Json("")}) {
    Json scenario = full_scenario();
    scenario["workload"]["torch"] = torch;
    scenario["workload"]["tensors"][0]["backward_us"] = "short";
    const auto told = mistakes_of(scenario);
    ASSERT_EQ(told.size(), 2U) << torch << together(told);
    EXPECT_TRUE(told[0].starts_with("x.json: workload.torch: ")) << told[0];
  }
}

TEST(AllMistakes, TenAreReportedAndTheRestCounted) {
  Json scenario = small_scenario();
  for (int i = 0; i < 25; ++i) {
    scenario["workload"]["tensors"][static_cast<std::size_t>(i)] = {
        {"name", "t" + std::to_string(i)}, {"shape", {10}}, {"backward_us", -1}};
  }
  const auto told = mistakes_of(scenario);
  ASSERT_EQ(told.size(), 11U) << together(told);
  EXPECT_TRUE(contains(told[9], "tensors[9]"));
  EXPECT_EQ(told[10], "and 15 more");
}

// Numbers that nothing else hangs on: any few of them are all told, and nothing besides.
TEST(AllMistakes, AFewAreAllReported) {
  const std::vector<std::pair<std::string, std::string>> numbers{
      {"/workload/update_ms", "workload.update_ms"},
      {"/workload/tensors/0/backward_us", "workload.tensors[0].backward_us"},
      {"/workload/tensors/0/forward_flops", "workload.tensors[0].forward_flops"},
      {"/workload/tensors/1/backward_us", "workload.tensors[1].backward_us"},
      {"/workload/batch", "workload.batch"},
      {"/cluster/intra/latency_us", "cluster.intra.latency_us"},
      {"/cluster/inter/nics", "cluster.inter.nics"},
      {"/cluster/upper/0/efficiency", "cluster.upper[0].efficiency"},
      {"/cluster/device/launch_us", "cluster.device.launch_us"},
      {"/cluster/jitter/relative", "cluster.jitter.relative"},
      {"/cluster/nccl/channels", "cluster.nccl.channels"},
      {"/strategies/1/streams", "strategies[1].streams"},
      {"/strategies/6/credit_mb", "strategies[6].credit_mb"},
      {"/training/from", "training.from"},
      {"/simulation/periods", "simulation.periods"},
      {"/seed", "seed"}};
  test::Dice dice(1610);
  for (int round = 0; round < 300; ++round) {
    Json scenario = full_scenario();
    std::vector<std::string> places;
    for (const auto& [pointer, place] : numbers) {
      if (!dice.chance(30) || places.size() == 9) continue;
      scenario[Pointer(pointer)] = "x";
      places.push_back(place);
    }
    const auto told = mistakes_of(scenario);
    EXPECT_EQ(told.size(), places.size()) << together(told);
    for (const auto& place : places) {
      EXPECT_TRUE(contains(together(told), "x.json: " + place + ": ")) << place << together(told);
    }
  }
}

// One mistake anywhere is one message: what follows from it is not told as another.
TEST(AllMistakes, OneIsOne) {
  std::vector<Pointer> places;
  test::walk(full_scenario(), Pointer(), [&](const Pointer& at, const Json& node) {
    if (!node.is_structured()) places.push_back(at);
  });
  ASSERT_GT(places.size(), 200U);
  for (const auto& place : places) {
    Json scenario = full_scenario();
    scenario[place] = {{"unknown", 1}};
    const auto told = mistakes_of(scenario);
    EXPECT_LE(told.size(), 1U) << place.to_string() << "\n" << together(told);
  }
}

TEST(AllMistakes, AMisspeltKeyIsOneToo) {
  Json scenario = small_scenario();
  auto& inter = scenario["cluster"]["inter"];
  inter["latency_use"] = inter["latency_us"];
  inter.erase("latency_us");
  const auto told = mistakes_of(scenario);
  ASSERT_EQ(told.size(), 1U) << together(told);
  EXPECT_TRUE(contains(told[0], "latency_us: missing (found 'latency_use'")) << told[0];
}

TEST(AllMistakes, NoMistakeIsReportedForAFaultlessFile) {
  EXPECT_TRUE(mistakes_of(full_scenario()).empty());
}

}  // namespace
}  // namespace syncline::input
