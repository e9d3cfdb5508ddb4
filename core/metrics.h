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
  Seconds communication = 0;  // per step: at least one collective is under way on rank 0
  // Per step: time of rank 0's compute stream for copying, encoding and decoding gradients and
  // waiting for the host.
  Seconds comm_overhead = 0;
  // Per step: idle time of rank 0's compute stream. It waits for collectives, slower ranks and
  // other stages of its pipeline. Computation, handling and this make the step.
  Seconds exposed = 0;
  // Minimum for any fusion and number of streams; NaN: not computed (metrics/bound.h).
  Seconds lower_bound = std::numeric_limits<double>::quiet_NaN();
  double throughput = 0;     // samples per second over all ranks; NaN: samples unknown
  double collectives = 0;    // per step
  double bytes_on_wire = 0;  // per step, of the rank that sends most
};

// Returns the collectives that a plan starts per training step, as `plan` lists them: reducing,
// scattering and gathering a bucket each count.
double collectives_per_step(const plan::Plan& plan);

// Returns the time of one training step in steady state: the first `warmup` periods are dropped.
// Requires fewer than the timeline has.
Seconds step_time_of(const plan::Plan& plan, const run::Timeline& timeline, int warmup);

// Measures the steady state: the first `warmup` periods of the timeline are dropped. Requires fewer
// than the timeline has.
Metrics measure(const plan::Plan& plan, const Workload& workload, const run::Timeline& timeline,
                int warmup, collective::CostCache& cache);

// Returns the mean of the metrics of a run's phases, weighted by steps.
Metrics mean_of(const std::vector<std::pair<Metrics, double>>& phases,
                std::int64_t samples_per_step);

using ExecutorFactory = std::function<std::unique_ptr<run::Executor>(const run::ExecutorSettings&)>;

struct Evaluated {
  Metrics metrics;
  plan::Plan plan;  // of the first phase, with interference, and its timeline
  run::Timeline timeline;
  std::vector<std::vector<Seconds>> others;  // run::Outcome::others of the first phase
};

// Plans and runs one strategy of a job, each phase of its training by itself, without the lower
// bound. Throws InputError (base/error.h) if tiers do not join all ranks, if the strategy has an
// unknown name, or if a step has no work.
Evaluated evaluate_strategy(const Job& job, const Strategy& strategy, run::Executor& executor,
                            collective::CostCache& cache);

}  // namespace syncline::measure
