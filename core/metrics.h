// The metrics of a strategy: a job is planned, run by an executor, and its timeline measured, phase
// by phase of its training. Seconds, bytes.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/cost.h"
#include "core/executor.h"
#include "core/job.h"
#include "core/plan.h"

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
  // No fusion and no number of streams goes below this; NaN: nobody asked (metrics/bound.h).
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

using ExecutorFactory = std::function<std::unique_ptr<run::Executor>(const run::ExecutorSettings&)>;

struct Evaluated {
  Metrics metrics;
  plan::Plan plan;  // of the first phase, with what interferes, and its timeline
  run::Timeline timeline;
  std::vector<std::vector<Seconds>> others;  // run::Outcome's, of the first phase
};

// Plans and runs one strategy of a job, each phase of its training by itself. Without the lower
// bound. Throws InputError (base/error.h) if tiers do not join all ranks, if the strategy names
// nothing that there is, or if a step computes and sends nothing.
Evaluated evaluate_strategy(const Job& job, const Strategy& strategy, run::Executor& executor,
                            collective::CostCache& cache);

}  // namespace syncline::measure
