// How long a job's step waited for its other ranks, rather than for the network.
#pragma once

#include "core/job/observed.h"
#include "core/json/json.h"

namespace syncline::job {

// What the scenario's first row lacks to the step that was measured, at most the time in which the
// step's compute stream stood waiting for collectives; 0 where the row is as long as the step.
Seconds unexplained_waiting(const Json& scenario, const Step& step);

}  // namespace syncline::job
