// A period of LocalSGD: local steps, and the averaging of their parameters, fragment by fragment.
// Fragment f of P is applied behind step (f + 1) * period / P, and sent `delay` steps before, both
// counted from the period's begin, as torchft's DiLoCo does (local_sgd.py).
#pragma once

#include "core/plan/communication.h"

namespace syncline::plan {

// `averaged` false: a run ends before the averaging.
Plan local_plan(const Workload& workload, const Cluster& cluster, const Strategy& strategy,
                std::int64_t period, bool averaged);

// The same where each step takes `step` as a whole, whatever a group exchanges in it.
Plan local_plan_of_steps(const Workload& workload, const Cluster& cluster, const Strategy& strategy,
                         Seconds step);

}  // namespace syncline::plan
