// What an answer will take, foreseen from the sizes in its scenario before any of the work is
// begun: ranks, sweep points, gradients, the steps of a period, the messages of a simulation. Meant
// to be right within a factor of three; the rates were measured on one core of a 2.4 GHz server.
#pragma once

#include "core/scenario/scenario.h"

namespace syncline::measure {

struct Estimate {
  Seconds time = 0;  // of one process
  double bytes = 0;  // of memory

  bool operator==(const Estimate&) const = default;
};

// kRunStreamed hands on each row as it is priced, kRun keeps them.
enum class Answer { kCheck, kPlan, kExplain, kRun, kRunStreamed, kSimulate, kTune };

// Only kCheck, both runs and kSimulate visit the scenario's sweep points.
Estimate estimate_of(const Scenario& scenario, Answer answer);

// Whether somebody should be told before it begins: above a minute, or a gibibyte.
bool is_heavy(const Estimate& estimate);

}  // namespace syncline::measure
