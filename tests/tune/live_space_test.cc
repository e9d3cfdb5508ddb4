// A live search on a whole scenario: fusion, streams and algorithm together, on an emulated machine
// that is not what the scenario says.
#include "studies/machines/live_space.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "formats/input/document.h"
#include "studies/machines/live_tuner.h"
#include "studies/tune/verdicts.h"

namespace syncline::tune {
namespace {

const input::Document& document() {
  static const input::Document read =
      input::read_document(SYNCLINE_SOURCE_DIR "/scenarios/tune_resnet50.json");
  return read;
}

// The scenario's own search with fewer streams and algorithms.
Search search_of(const Scenario& scenario) {
  Search search = *input::parse_search(document(), scenario);
  search.streams = {1, 3};
  search.algorithms = {"ring", "double_binary_tree"};
  return search;
}

LiveSpace small_space() {
  LiveSpace space;
  space.most_rules = 6;
  return space;
}

TEST(LiveSpace, ScalesEveryTier) {
  const Scenario scenario = input::parse_scenario(document());
  const Scenario scaled = scaled_scenario(scenario, {2, 4, 0});
  ASSERT_FALSE(scenario.cluster.tiers.empty());
  for (std::size_t t = 0; t < scenario.cluster.tiers.size(); ++t) {
    EXPECT_EQ(scaled.cluster.tiers[t].latency, 2 * scenario.cluster.tiers[t].latency);
    EXPECT_EQ(scaled.cluster.tiers[t].bandwidth, scenario.cluster.tiers[t].bandwidth / 4);
    EXPECT_EQ(scaled.cluster.tiers[t].flow_cap, scenario.cluster.tiers[t].flow_cap / 4);
  }
  EXPECT_EQ(scaled.cluster.collective_overhead, 2 * scenario.cluster.collective_overhead);
}

// The middle model is the scenario itself: its column is what `syncline run` would print.
TEST(LiveSpace, MembersAreTheModelsTimes) {
  const Scenario scenario = input::parse_scenario(document());
  const LiveSpace space = small_space();
  const SearchProblem problem = live_problem(scenario, search_of(scenario), space);
  const auto factors = member_factors(space.steps);
  ASSERT_EQ(problem.ensemble.means.rows(), static_cast<Eigen::Index>(factors.size()));
  ASSERT_EQ(problem.ensemble.means.cols(), static_cast<Eigen::Index>(problem.candidates.size()));
  const std::size_t middle = factors.size() / 2;
  ASSERT_EQ(factors[middle].latency * factors[middle].transfer, 1);
  for (std::size_t c = 0; c < problem.candidates.size(); c += 17) {
    EXPECT_NEAR(std::exp(problem.ensemble.means(static_cast<Eigen::Index>(middle),
                                                static_cast<Eigen::Index>(c))),
                step_by_model(scenario, problem.candidates[c].strategy), 1e-12);
  }
  // All axes of the search are there.
  std::set<double> streams, algorithms;
  for (const auto& candidate : problem.candidates) {
    streams.insert(candidate.at[2]);
    algorithms.insert(candidate.at[3]);
  }
  EXPECT_EQ(streams.size(), 2U);
  EXPECT_EQ(algorithms.size(), 2U);
}

// Twice the latency and two thirds of the bandwidth, or the reverse, than the scenario says: within
// 12 evaluations to 3 % of the best that the model finds with the truth before it.
TEST(LiveSpace, FindsTheBestOnAnotherMachine) {
  const Scenario scenario = input::parse_scenario(document());
  const Search search = search_of(scenario);
  const SearchProblem problem = live_problem(scenario, search, small_space());
  for (const MemberFactors& factors : {MemberFactors{2, 1.5, 0}, MemberFactors{0.5, 0.7, 0}}) {
    const Scenario machine = scaled_scenario(scenario, factors);
    // Everything that a search for the truth would cost, each kind of buckets under the truth.
    Seconds best = 1e9;
    const SearchProblem truth = live_problem(machine, search, small_space());
    for (const auto& candidate : truth.candidates) {
      best = std::min(best, step_by_model(machine, candidate.strategy));
    }
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      const LiveObjective objective = emulated_objective(
          [&](const Candidate& candidate) { return step_by_model(machine, candidate.strategy); },
          0.02);
      LiveSettings settings;
      settings.seed = seed;
      const LiveTuning tuning = tune_live(problem, settings, objective, nullptr);
      EXPECT_LE(tuning.observations.size(), 12U);
      const Seconds found = step_by_model(machine, problem.candidates[tuning.state.best].strategy);
      EXPECT_LE(found / best, 1.03) << factors.latency << " seed " << seed;
    }
  }
}

}  // namespace
}  // namespace syncline::tune
