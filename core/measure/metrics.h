// From a timeline to the figures of one row: what a person compares.
#pragma once

#include <limits>
#include <utility>
#include <vector>

#include "core/collective/cost.h"
#include "core/plan/plan.h"
#include "core/run/executor.h"

namespace syncline::measure {

struct Metrics {
  Seconds step_time = 0;      // one training step in steady state
  Seconds compute = 0;        // per step: model work on rank 0's compute stream
  Seconds communication = 0;  // per step: some collective is under way on rank 0
  // Per step: rank 0's compute stream handles gradients. It copies, encodes or decodes them, or
  // waits for the host.
  Seconds handling = 0;
  // Per step: rank 0's compute stream stands still. It waits for collectives, slower ranks and
  // other stages of its pipeline. Computation, handling and this make the step.
  Seconds exposed = 0;
  // No fusion and no number of streams goes below this; NaN: nobody asked (lower_bound_of).
  Seconds lower_bound = std::numeric_limits<double>::quiet_NaN();
  double throughput = 0;     // samples per second over all ranks; NaN: nobody said how many
  double collectives = 0;    // per step
  double bytes_on_wire = 0;  // per step, sent by the rank that sends most
};

// Collectives that a plan starts per training step, as `plan` lists them: of a bucket that is
// reduced, scattered and gathered each one counts.
double collectives_per_step(const plan::Plan& plan);

// One training step of a plan in steady state: the first `warmup` periods are dropped. Requires
// fewer than the timeline has.
Seconds step_time_of(const plan::Plan& plan, const run::Timeline& timeline, int warmup);

// Steady state: the first `warmup` periods of the timeline are dropped. Requires fewer than the
// timeline has.
Metrics measure(const plan::Plan& plan, const Workload& workload, const run::Timeline& timeline,
                int warmup, collective::CostCache& cache);

// Weighted mean of the metrics of a run's phases, by steps.
Metrics mean_of(const std::vector<std::pair<Metrics, double>>& phases,
                std::int64_t samples_per_step);

}  // namespace syncline::measure
