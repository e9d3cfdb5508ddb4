#include <algorithm>
#include <cmath>
#include <sstream>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/error.h"
#include "core/base/internal_error.h"
#include "core/metrics.h"
#include "core/metrics/expect_time.h"
#include "core/metrics/phases.h"
#include "core/run/interference.h"

namespace syncline::measure {
namespace {

// Throws if a cluster's levels do not join all of its ranks: times would be those of fewer.
void expect_joined(const Cluster& cluster) {
  const int joined = cluster.tiers.empty() ? 1 : cluster.tiers.back().span;
  if (joined >= cluster.ranks()) return;
  throw InputError("the tiers of cluster '" + cluster.name + "' join " + std::to_string(joined) +
                   " of its " + std::to_string(cluster.ranks()) +
                   " ranks: the last one's span is all of them");
}

// Throws for a step without computation and collectives.
void refuse_idle(const Evaluated& evaluated, const Strategy& strategy) {
  if (evaluated.metrics.step_time > 0 || evaluated.metrics.compute > 0) return;
  const auto sends = [](const plan::Op& op) {
    return std::holds_alternative<collective::Collective>(op.work);
  };
  if (std::ranges::any_of(evaluated.plan.ops, sends)) return;
  throw InputError("a step with strategy '" + strategy.name +
                   "' computes nothing and sends nothing, so it takes no time: give workload."
                   "forward_ms, or backward_us of the tensors");
}

// Finds the costs that measure() asks for. A simulation, which may be another process, begins with
// these.
void find_costs(const plan::Plan& plan, collective::CostCache& cache) {
  for (const plan::Op& op : plan.ops) {
    const auto* collective = std::get_if<collective::Collective>(&op.work);
    if (collective != nullptr) cache.cost(*collective);
  }
}

}  // namespace

void expect_time(Seconds step, const Strategy& strategy) {
  constexpr Seconds kLongest = 1e30;  // far above any input
  if (std::isfinite(step) && step > 0 && step < kLongest) return;
  std::ostringstream text;
  text << "strategy '" << strategy.name << "' has a step of " << step << " s";
  throw InternalError(text.str());
}

Evaluated evaluate_strategy(const Job& job, const Strategy& strategy, run::Executor& executor,
                            collective::CostCache& cache) {
  expect_joined(job.cluster);
  // Each phase is measured by itself and counts by its steps. The first one is stored for traces.
  Evaluated evaluated;
  std::vector<std::pair<Metrics, double>> phases;
  for_each_phase(job, strategy, executor.traits(), [&](TrainingStretch& phase) {
    plan::Plan plan = run::with_interference(std::move(phase.plan), job.cluster.device, cache);
    if (!executor.traits().closed_form) find_costs(plan, cache);
    run::Outcome outcome = executor.run(plan, {}, phase.periods);
    phases.emplace_back(measure(plan, phase.workload, outcome.timeline, phase.warmup, cache),
                        phase.steps);
    if (phases.size() > 1) return;
    evaluated.plan = std::move(plan);
    evaluated.timeline = std::move(outcome.timeline);
    evaluated.others = std::move(outcome.others);
  });
  const int replicas = job.cluster.ranks() / job.workload.parallel.model_ranks();
  evaluated.metrics = phases.size() == 1 ? phases.front().first
                                         : mean_of(phases, samples_of(job.workload) * replicas);
  refuse_idle(evaluated, strategy);
  expect_time(evaluated.metrics.step_time, strategy);
  return evaluated;
}

}  // namespace syncline::measure
