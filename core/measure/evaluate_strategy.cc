#include "core/measure/evaluate_strategy.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/plan/compute_fusion.h"
#include "core/plan/planner.h"
#include "core/run/interference.h"

namespace syncline::measure {
namespace {

// How many periods are run, and how many of the first are dropped.
struct Periods {
  int all = 3;
  int warmup = 1;
};

// Without jitter every period after the first is alike. With jitter the mean of about
// kJitteredSteps steps is taken, unless the expectation is known in closed form.
Periods periods_for(const Scenario& scenario, const plan::Plan& plan,
                    run::ExecutorTraits executor) {
  constexpr int kJitteredSteps = 256;
  Periods periods;
  // Where steps overlap the first ones are not yet alike: the slope over some later ones.
  if (plan::crosses_steps(plan)) {
    periods.warmup = executor.cheap ? 8 : 3;
    periods.all = 2 * periods.warmup;
  }
  // Jobs whose steps are not as long meet at another moment in each.
  if (!executor.closed_form && !scenario.others.empty()) {
    constexpr int kMetSteps = 8;
    periods.all = std::max(periods.all, periods.warmup + kMetSteps);
  }
  const Jitter& jitter = scenario.cluster.jitter;
  if (!executor.closed_form && jitter.kind != Jitter::Kind::kNone && !jitter.guessed) {
    periods.all = periods.warmup + std::max(8, kJitteredSteps / plan.steps);
  }
  periods.warmup = scenario.simulation.warmup.value_or(periods.warmup);
  periods.all = scenario.simulation.periods.value_or(std::max(periods.all, periods.warmup + 1));
  periods.warmup = std::min(periods.warmup, periods.all - 1);
  return periods;
}

}  // namespace

void for_each_phase(const Scenario& scenario, const Strategy& strategy,
                    run::ExecutorTraits executor,
                    const std::function<void(TrainingStretch&)>& use) {
  const auto fused =
      plan::fused_workload(scenario.workload, scenario.cluster.device, strategy.compute_fusion);
  const Workload& workload = fused ? *fused : scenario.workload;
  for (const auto& part : plan::training_phases(strategy, scenario.training)) {
    TrainingStretch phase{workload,
                          plan::make_plan(workload, scenario.cluster, strategy, part.point)};
    const Periods periods = periods_for(scenario, phase.plan, executor);
    phase.periods = periods.all;
    phase.warmup = periods.warmup;
    phase.steps = static_cast<double>(part.steps);
    use(phase);
  }
}

Evaluated evaluate_strategy(const Scenario& scenario, const Strategy& strategy,
                            run::Executor& executor, collective::CostCache& cache) {
  // Each phase is measured by itself and counts by its steps. The first one is kept for traces.
  Evaluated evaluated;
  std::vector<WeightedMetrics> phases;
  for_each_phase(scenario, strategy, executor.traits(), [&](TrainingStretch& phase) {
    plan::Plan plan = run::with_interference(std::move(phase.plan), scenario.cluster.device, cache);
    run::Outcome outcome = executor.run(plan, {}, phase.periods);
    phases.push_back(
        {measure(plan, phase.workload, outcome.timeline, phase.warmup, cache), phase.steps});
    if (phases.size() > 1) return;
    evaluated.plan = std::move(plan);
    evaluated.timeline = std::move(outcome.timeline);
    evaluated.others = std::move(outcome.others);
  });
  const int replicas = scenario.cluster.ranks() / scenario.workload.parallel.model_ranks();
  evaluated.metrics = phases.size() == 1
                          ? phases.front().metrics
                          : mean_of(phases, samples_of(scenario.workload) * replicas);
  return evaluated;
}

Seconds lower_bound_of(const Scenario& scenario, const Strategy& strategy, Seconds step_time,
                       collective::CostCache& cache) {
  std::vector<std::pair<Seconds, double>> phases;
  for_each_phase(scenario, strategy, {}, [&](TrainingStretch& phase) {
    phases.emplace_back(lower_bound(phase.plan, phase.workload, cache), phase.steps);
  });
  if (phases.size() == 1) return std::min(phases.front().first, step_time);
  Seconds sum = 0;
  double steps = 0;
  for (const auto& [bound, of_phase] : phases) {
    sum += bound * of_phase;
    steps += of_phase;
  }
  return std::min(sum / steps, step_time);
}

}  // namespace syncline::measure
