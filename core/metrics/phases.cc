#include "core/metrics/phases.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/plan/compute_fusion.h"

namespace syncline::measure {
namespace {

// Sets the number of periods. Without jitter all after the first are equal. With jitter the mean of
// about kJitteredSteps steps is taken, unless a closed form gives the expectation.
void set_periods(const Job& job, run::ExecutorTraits executor, TrainingStretch& phase) {
  constexpr int kJitteredSteps = 256;
  // Overlapping steps are stationary only after the first few: later ones are measured. A period of
  // LocalSGD has several of them.
  if (plan::crosses_steps(phase.plan)) {
    const int first = executor.cheap ? 8 : 3;
    phase.warmup = (first + phase.plan.steps - 1) / phase.plan.steps;
    phase.periods = 2 * phase.warmup;
  }
  // Jobs with steps of different length meet at another moment in each step.
  if (!executor.closed_form && executor.shares_fabric) {
    constexpr int kMetSteps = 8;
    phase.periods = std::max(phase.periods, phase.warmup + kMetSteps);
  }
  const Jitter& jitter = job.cluster.jitter;
  if (!executor.closed_form && jitter.kind != Jitter::Kind::kNone && !jitter.guessed) {
    phase.periods = phase.warmup + std::max(8, kJitteredSteps / phase.plan.steps);
  }
  phase.warmup = job.simulation.warmup.value_or(phase.warmup);
  phase.periods = job.simulation.periods.value_or(std::max(phase.periods, phase.warmup + 1));
  phase.warmup = std::min(phase.warmup, phase.periods - 1);
}

struct Phase : plan::TrainingPhase {
  int wait_steps = 0;  // of its plan
};

// Takes the steps of long periods apart that neither send nor apply a mean: they are alike, and one
// is measured for all. The rest keeps, for each fragment, its delay and the steps that overlap.
// Ranks that are drawn one by one drift over a whole period, which stays.
std::vector<Phase> with_plain_steps_apart(const std::vector<plan::TrainingPhase>& phases,
                                          const LocalSgd& local, bool drawn) {
  constexpr std::int64_t kOverlapping = 8;
  std::vector<Phase> apart;
  for (const plan::TrainingPhase& phase : phases) {
    const plan::TrainingPoint& point = phase.point;
    const std::int64_t own = point.step < local.begin_step ? 1 : local.period;
    const std::int64_t period = point.period > 0 ? point.period : own;
    const std::int64_t plain = period / local.fragments - local.delay - kOverlapping;
    apart.push_back({phase});
    if (!point.averaged) apart.back().wait_steps = static_cast<int>(point.period);
    if (!local.enabled || drawn || !point.averaged || plain <= plan::kPlainSteps) continue;
    const std::int64_t periods = std::max<std::int64_t>(1, phase.steps / period);
    const std::int64_t left = plain * local.fragments;
    apart.back().point.period = period - left;
    apart.back().steps = periods * (period - left);
    apart.back().wait_steps = static_cast<int>(period);
    apart.push_back({{point, periods * left}, static_cast<int>(period)});
    apart.back().point.period = left;
    apart.back().point.averaged = false;
  }
  return apart;
}

}  // namespace

std::vector<plan::TrainingPhase> planned_phases(const Strategy& strategy,
                                                const Training& training) {
  const auto apart =
      with_plain_steps_apart(plan::training_phases(strategy, training), strategy.local_sgd, false);
  return {apart.begin(), apart.end()};
}

void for_each_phase(const Job& job, const Strategy& strategy, run::ExecutorTraits executor,
                    const std::function<void(TrainingStretch&)>& use) {
  const auto fused =
      plan::fused_workload(job.workload, job.cluster.device, strategy.compute_fusion);
  const Workload& workload = fused ? *fused : job.workload;
  const Jitter& jitter = job.cluster.jitter;
  const bool drawn = !executor.closed_form && jitter.kind != Jitter::Kind::kNone && !jitter.guessed;
  for (const Phase& part : with_plain_steps_apart(plan::training_phases(strategy, job.training),
                                                  strategy.local_sgd, drawn)) {
    TrainingStretch phase{workload, plan::make_plan(workload, job.cluster, strategy, part.point)};
    phase.plan.wait_steps = part.wait_steps;
    set_periods(job, executor, phase);
    phase.steps = static_cast<double>(part.steps);
    use(phase);
  }
}

Seconds mean_over_phases(const Job& job, const Strategy& strategy, run::ExecutorTraits executor,
                         const std::function<Seconds(TrainingStretch&)>& step) {
  Seconds sum = 0;
  double steps = 0;
  for_each_phase(job, strategy, executor, [&](TrainingStretch& phase) {
    sum += step(phase) * phase.steps;
    steps += phase.steps;
  });
  return sum / steps;
}

}  // namespace syncline::measure
