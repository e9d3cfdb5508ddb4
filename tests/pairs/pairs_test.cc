// A part of the net over pairs of capabilities; make pairs casts all of it.
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "formats/input/document.h"
#include "tests/pairs/net.h"

namespace syncline::pairs {
namespace {

constexpr std::size_t kEvery = 79;  // of the pairs, and so many triples: ten seconds
constexpr std::size_t kTriples = 60;

TEST(Pairs, PassAllChecks) {
  std::vector<Case> cases;
  const auto all = pair_cases();
  for (std::size_t i = 0; i < all.size(); i += kEvery) cases.push_back(all[i]);
  const auto triples = drawn_cases(kTriples, 3, 2);
  cases.insert(cases.end(), triples.begin(), triples.end());
  const auto results = judged(cases, {});
  std::size_t refused = 0;
  for (const Result& each : results) {
    refused += each.verdict.refusal.empty() ? 0 : 1;
    for (const Fault& fault : each.verdict.faults) {
      ADD_FAILURE() << name_of(each.of.shape, each.of.chosen) << ", " << fault.law << ": "
                    << fault.what << "\n"
                    << scenario_of(each.of.shape, each.of.chosen).dump();
    }
  }
  EXPECT_LT(2 * refused, results.size()) << "most of the net is refused";
}

// A fragment that no shape takes holds nothing, but for one: interleaved stages take their
// micro-batches in rounds, and a remainder is refused whatever stands next to it.
TEST(Pairs, EachFragmentIsAScenarioOfItsOwn) {
  for (std::size_t i = 0; i < fragments().size(); ++i) {
    std::string refusal;
    const bool taken = std::ranges::any_of(shapes(), [&](const Shape& shape) {
      try {
        input::parse_scenario(input::document_of("x.json", scenario_of(shape, {i})));
        return true;
      } catch (const InputError& error) {
        refusal = error.what();
        return false;
      }
    });
    EXPECT_EQ(taken, fragments()[i].name != "interleaved remainder")
        << fragments()[i].name << ": " << refusal;
  }
}

TEST(Pairs, AreAllButValuesOfOneKnob) {
  const std::size_t count = fragments().size();
  std::size_t exclusive = 0;
  for (std::size_t a = 0; a < count; ++a) {
    for (std::size_t b = a + 1; b < count; ++b) exclusive += exclude({a, b}) ? 1 : 0;
  }
  const std::size_t pairs = count * (count - 1) / 2 - exclusive;
  EXPECT_EQ(pair_cases().size(), shapes().size() * (1 + count + pairs));
}

// What crashes or hangs is a fault of its own case, and the others are judged.
TEST(Pairs, ACrashIsOneCaseOnly) {
  std::vector<Case> cases;
  for (std::size_t i = 0; i < 7; ++i) cases.push_back({{1, static_cast<int>(i) + 1}, {}});
  for (const int jobs : {1, 2, 3}) {
    NetOptions options;
    options.jobs = jobs;
    options.seconds_each = 1;
    options.judge = [](const Json& scenario, const Asked&) {
      const int gpus = scenario.at("cluster").at("gpus_per_node");
      if (gpus == 2 || gpus == 7) std::abort();
      if (gpus == 4) ::pause();
      Verdict verdict;
      verdict.refusal = std::to_string(gpus);
      return verdict;
    };
    const auto results = judged(cases, options);
    ASSERT_EQ(results.size(), cases.size());
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const bool ends = i == 1 || i == 3 || i == 6;
      ASSERT_EQ(results[i].verdict.faults.size(), ends ? 1u : 0u) << i;
      if (ends) {
        EXPECT_EQ(results[i].verdict.faults[0].what, i == 3 ? "hangs" : "signal 6");
      } else {
        EXPECT_EQ(results[i].verdict.refusal, std::to_string(i + 1));
      }
    }
  }
}

TEST(Pairs, KindsOfRefusalsKnowNoNumbersAndNames) {
  EXPECT_EQ(kind_of_refusal("/a/b.json: cluster.speeds: found 12, expected a divisor of 'x'"),
            kind_of_refusal("c.json: cluster.speeds: found 3, expected a divisor of 'y 4'"));
  EXPECT_NE(kind_of_refusal("a.json: cluster.speeds: found 12"),
            kind_of_refusal("a.json: cluster.nodes: found 12"));
}

}  // namespace
}  // namespace syncline::pairs
