// From a timeline to the figures of one row: what a person compares.
#pragma once

#include "core/collective/price.h"
#include "core/plan/plan.h"
#include "core/run/timeline.h"

namespace syncline::measure {

struct Metrics {
  Seconds step_time = 0;      // one training step in steady state
  Seconds compute = 0;        // per step: model work on rank 0's compute stream
  Seconds communication = 0;  // per step: some collective is under way on rank 0
  // Per step: the compute stream of rank 0 does no model work. What overlap could still hide:
  // waiting for collectives and slower ranks, encoding, host synchronisation.
  Seconds exposed = 0;
  // Of that, what the compute stream spends on gradients: copying, encoding, decoding, and waiting
  // for the host.
  Seconds handling = 0;
  Seconds lower_bound = 0;   // no fusion and no number of streams goes below this
  double throughput = 0;     // samples per second over all ranks; NaN: nobody said how many
  double collectives = 0;    // buckets exchanged per step
  double bytes_on_wire = 0;  // per step, sent by the rank that sends most
};

// One training step of a plan in steady state: the first `warmup` periods are dropped. Requires
// fewer than the timeline has.
Seconds step_time_of(const plan::Plan& plan, const run::Timeline& timeline, int warmup);

// Steady state: the first `warmup` periods of the timeline are dropped. Requires fewer than the
// timeline has.
Metrics measure(const plan::Plan& plan, const Workload& workload, const run::Timeline& timeline,
                int warmup, collective::PriceBook& book);

// Weighted mean of the metrics of a run's phases, by steps.
struct WeightedMetrics {
  Metrics metrics;
  double steps = 1;
};
Metrics mean_of(const std::vector<WeightedMetrics>& phases, std::int64_t samples_per_step);

}  // namespace syncline::measure
