// What one strategy costs: planned, run by an executor and measured, phase by phase of a training.
#pragma once

#include <functional>
#include <memory>

#include "core/collective/cost.h"
#include "core/measure/metrics.h"
#include "core/plan/plan.h"
#include "core/run/executor.h"
#include "core/scenario/scenario.h"
#include "core/scenario/workload.h"

namespace syncline::measure {

using ExecutorFactory = std::function<std::unique_ptr<run::Executor>(const run::ExecutorSettings&)>;

struct Evaluated {
  Metrics metrics;
  plan::Plan plan;  // of the first phase, with what interferes, and its timeline
  run::Timeline timeline;
  std::vector<std::vector<Seconds>> others;  // run::Outcome's, of the first phase
};

// One stretch of a training with a plan of its own, and how it is run to be measured.
struct TrainingStretch {
  const Workload& workload;  // with its operators fused as the strategy says
  plan::Plan plan;
  int periods = 3;   // to run
  int warmup = 1;    // of these, dropped
  double steps = 1;  // that it stands for
};

// A sparsity ramp or growing periods make a training of several phases; most have one.
void for_each_phase(const Scenario& scenario, const Strategy& strategy,
                    run::ExecutorTraits executor, const std::function<void(TrainingStretch&)>& use);

// The mean of a step time over the phases, by their steps.
Seconds mean_over_phases(const Scenario& scenario, const Strategy& strategy,
                         run::ExecutorTraits executor,
                         const std::function<Seconds(TrainingStretch&)>& step);

// The scenario as it stands: a sweep point has been put in place already. Without the lower bound.
Evaluated evaluate_strategy(const Scenario& scenario, const Strategy& strategy,
                            run::Executor& executor, collective::CostCache& cache);

// What no fusion and no number of streams goes below, in the mean over the
// phases. It walks the links for each size of bucket, so that only what is shown should be asked.
// No more than `step_time`, which the strategy was found to take: cost models of small payloads
// overstate it.
Seconds lower_bound_of(const Scenario& scenario, const Strategy& strategy, Seconds step_time,
                       collective::CostCache& cache);

// How long each kind of link works for a byte of the payload, of which the cost is a share.
std::vector<double> link_times(const collective::CollectiveCost& cost, double share = 1);

// The least step time that any fusion and any number of streams can reach, by latency, links and
// computation: no gradient is sent before it is ready.

// The greatest of
//   the computation of a step, with its copies into buckets and the waiting for the host,
//   ready_i + latency of its exchange + its own transfer, and
//   ready_i + first latency + link time of all gradients that are ready from then on,
// over the gradients i, plus the update that must follow. The first latency is one message's; in an
// exchange's own latency and transfer ranks run ahead of each other as far as messages let them
// (collective/critical_path.h), and pipelines have the fewest rounds and the cheapest bytes of any
// payload.
//
// Where steps overlap, ready_i counts from the forward pass of gradient i's own layer: from there
// to the next step's forward pass of that layer its own computation, and then the exchange of all
// that became ready since and is needed by then, must pass, so that a step takes at least as long.
// The computation of a step bounds it as before.
//
// Valid for this plan at any number of streams, and for other fusions of it with the same
// algorithm, hierarchy and codec; in the model and in both grains of the simulation.
Seconds lower_bound(const plan::Plan& plan, const Workload& workload, collective::CostCache& cache);

}  // namespace syncline::measure
