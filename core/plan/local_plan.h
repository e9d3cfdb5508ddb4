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

// Plans a period: applies fragment f of P after step (f + 1) * period / P, and sends it `delay`
// steps earlier. Both count from the period's begin, as in torchft's DiLoCo (local_sgd.py).
// `averaged` false: the run ends before the averaging.
Plan local_plan(const Workload& workload, const Cluster& cluster, const Strategy& strategy,
                const TrainingPoint& point, std::int64_t period, bool averaged);

// Plans a period whose steps last `step`, in place of planned steps with exchanges inside groups.
Plan local_plan_of_steps(const Workload& workload, const Cluster& cluster, const Strategy& strategy,
                         Seconds step);

}  // namespace syncline::plan
