// Timelines of what somebody wants to look at: strategies of a scenario at any one of its sweep
// points, on any of the ranks.
#pragma once

#include <string>
#include <vector>

#include "core/input/document.h"
#include "core/measure/evaluate_strategy.h"
#include "core/measure/report.h"

namespace syncline::measure {

// All of it is there: the sweep point, strategies of these names, and as many ranks at that point.
struct TraceChoice {
  SweepPoint point;
  std::vector<std::string> strategies;
  std::vector<int> ranks;  // empty: those that the executor shows by itself
};

// The workload and the timelines of the choice, in the name of the report of the scenario in
// `document`, whose fitted values hold here too; it has no rows.
Report chosen_timelines(const input::Document& document, const TraceChoice& choice,
                        const ExecutorFactory& factory, const Report& report);

}  // namespace syncline::measure
