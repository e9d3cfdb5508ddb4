// A period of LocalSGD as a plan: local steps, and the averaging of their parameters, fragment by
// fragment.
#pragma once

#include <cstdint>

#include "core/base/units.h"
#include "core/cluster.h"
#include "core/job.h"
#include "core/plan.h"
#include "core/strategy.h"

namespace syncline::plan {

// Applies fragment f of P behind step (f + 1) * period / P, and sends it `delay` steps before, both
// counted from the period's begin, as torchft's DiLoCo does (local_sgd.py). `averaged` false: a run
// ends before the averaging.
Plan local_plan(const Workload& workload, const Cluster& cluster, const Strategy& strategy,
                const TrainingPoint& point, std::int64_t period, bool averaged);

// Plans the same with steps that each take `step` as a whole, whatever a group exchanges in them.
Plan local_plan_of_steps(const Workload& workload, const Cluster& cluster, const Strategy& strategy,
                         Seconds step);

}  // namespace syncline::plan
