#include "core/tune/live_report.h"

#include <algorithm>

#include "core/tune/live_space.h"

namespace syncline::tune {

LiveReport begin_report(const Scenario& scenario, const Search& search, const MemberFactors& error,
                        bool all) {
  LiveReport report;
  report.scenario = scenario.name;
  report.workload = scenario.workload.name;
  report.cluster = scenario.cluster.name;
  report.baseline = scenario.baseline;
  LiveSpace space;
  if (all) {
    space.most_rules = 100000;
    space.margin = 1000;
  }
  report.problem = live_problem(scaled_scenario(scenario, error), search, space);
  return report;
}

const Strategy& baseline_of(const Scenario& scenario) {
  return *std::find_if(scenario.strategies.begin(), scenario.strategies.end(),
                       [&](const Strategy& s) { return s.name == scenario.baseline; });
}

}  // namespace syncline::tune
