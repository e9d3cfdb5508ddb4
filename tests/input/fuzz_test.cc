// Broken scenarios without end: whatever happens to the text or to a value, the answer is a valid
// scenario or an InputError that names the file, never a crash or another exception.
#include <gtest/gtest.h>

#include <random>

#include "core/plan.h"
#include "formats/input/document.h"
#include "tests/support/full_scenario.h"

namespace syncline::input {
namespace {

using test::error_of_text;
using test::full_scenario;

unsigned below(std::mt19937& random, std::size_t n) {
  return static_cast<unsigned>(random() % static_cast<unsigned>(n));
}

std::string mutated(std::string text, std::mt19937& random) {
  const unsigned edits = 1 + below(random, 3);
  for (unsigned e = 0; e < edits && !text.empty(); ++e) {
    const std::size_t at = below(random, text.size());
    const std::size_t length = 1 + below(random, below(random, 4) == 0 ? 60 : 4);
    switch (below(random, 5)) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, text.substr(at, length));
        break;
      case 2:
        text[at] = static_cast<char>(below(random, 256));
        break;
      case 3: {
        constexpr std::string_view kSyntax = "{}[]\",:-+.eE0123456789tfn\\ ";
        text[at] = kSyntax[below(random, kSyntax.size())];
        break;
      }
      case 4:
        text.insert(at, text.substr(below(random, text.size()), length));
        break;
    }
  }
  return text;
}

TEST(Fuzz, MutatedTextIsReadOrRefused) {
  std::mt19937 random(20240607);
  const std::string compact = full_scenario().dump();
  int valid = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    const std::string text = mutated(compact, random);
    std::string message;
    ASSERT_NO_THROW(message = error_of_text(text)) << text;
    ASSERT_TRUE(message.empty() || message.starts_with("x.json: ")) << message << "\n" << text;
    valid += message.empty();
  }
  EXPECT_LT(valid, 2000);  // most mutations do break something
}

void collect(const Json& node, const Json::json_pointer& at,
             std::vector<Json::json_pointer>& places) {
  places.push_back(at);
  if (node.is_object()) {
    for (const auto& [key, value] : node.items()) collect(value, at / key, places);
  } else if (node.is_array()) {
    for (std::size_t i = 0; i < node.size(); ++i) collect(node[i], at / i, places);
  }
}

Json random_value(std::mt19937& random) {
  static const char* const kValues[] = {"null",
                                        "true",
                                        "false",
                                        "0",
                                        "1",
                                        "-1",
                                        "2",
                                        "0.5",
                                        "7",
                                        "1e-300",
                                        "1e300",
                                        "-1e300",
                                        "1e15",
                                        "4294967296",
                                        "9223372036854775807",
                                        "18446744073709551615",
                                        "-9223372036854775808",
                                        "\"\"",
                                        "\"ring\"",
                                        "\"x.json\"",
                                        "\"\\u0000\"",
                                        "[]",
                                        "{}",
                                        "[[]]",
                                        "[{}]",
                                        "{\"name\":\"a\"}",
                                        "[1,2,3]",
                                        "[\"a\",1]",
                                        "[[0,1],[1,2]]",
                                        "{\"rule\":\"size\"}",
                                        "{\"file\":\"x\"}"};
  return Json::parse(kValues[below(random, std::size(kValues))]);
}

TEST(Fuzz, MutatedValuesAreReadOrRefused) {
  const Json full = full_scenario();
  std::vector<Json::json_pointer> places;
  collect(full, Json::json_pointer(), places);
  std::mt19937 random(42);
  int valid = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    Json broken = full;
    const unsigned edits = 1 + below(random, 2);
    for (unsigned e = 0; e < edits; ++e) {
      const auto& at = places[below(random, places.size())];
      try {
        broken.at(at) = random_value(random);
      } catch (const Json::exception&) {
        continue;  // the first edit took the place away
      }
    }
    std::string message;
    ASSERT_NO_THROW(message = test::error_of(broken)) << broken;
    ASSERT_TRUE(message.empty() || message.starts_with("x.json: ")) << message << "\n" << broken;
    valid += message.empty();
  }
  EXPECT_GT(valid, 10);
}

// What the reader accepts must also survive planning: no judgement is left for later.
TEST(Fuzz, ReadScenariosCanBePlanned) {
  const Json full = full_scenario();
  std::vector<Json::json_pointer> places;
  collect(full["strategies"], Json::json_pointer("/strategies"), places);
  std::mt19937 random(43);
  for (int trial = 0; trial < 1500; ++trial) {
    Json broken = full;
    broken["cluster"]["nodes"] = 8;
    broken.at(places[below(random, places.size())]) = random_value(random);
    if (!test::error_of(broken).empty()) continue;
    const Scenario scenario = test::parsed(broken);
    for (const auto& strategy : scenario.strategies) {
      const auto phases = plan::training_phases(strategy, scenario.training);
      ASSERT_FALSE(phases.empty());
      std::int64_t steps = 0;
      for (const auto& phase : phases) {
        steps += phase.steps;
        plan::make_plan(scenario.workload, scenario.cluster, strategy, phase.point);
      }
      // Ticks come at every moment of a cycle alike: each phase once for each moment.
      const std::int64_t moments = strategy.fusion.cycle > 0 ? plan::kTickPhases : 1;
      EXPECT_EQ(steps, 1000 * moments) << broken["strategies"];
    }
  }
}

TEST(Fuzz, MutatedPathsAreSetOrRefused) {
  std::mt19937 random(44);
  const std::string paths[] = {"cluster.inter.bandwidth_gbps", "strategies.fused.fusion.size_mb",
                               "workload.tensors.0.shape.1", "training.learning_rate.initial"};
  for (int trial = 0; trial < 2000; ++trial) {
    Document document = document_from_text("x.json", full_scenario().dump());
    const std::string path = mutated(paths[below(random, std::size(paths))], random);
    const std::string message = test::input_error([&] {
      set_key(document, path, random_value(random));
      parse_scenario(document);
    });
    ASSERT_TRUE(message.empty() || message.starts_with("x.json: ")) << path << ": " << message;
  }
}

}  // namespace
}  // namespace syncline::input
