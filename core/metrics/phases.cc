#include "core/metrics/phases.h"

#include <algorithm>
#include <utility>

#include "core/plan/compute_fusion.h"

namespace syncline::measure {
namespace {

// Sets the number of periods. Without jitter all after the first are equal. With jitter the mean of
// about kJitteredSteps steps is taken, unless a closed form gives the expectation.
void set_periods(const Job& job, run::ExecutorTraits executor, TrainingStretch& phase) {
  constexpr int kJitteredSteps = 256;
  // Overlapping steps are stationary only after the first few: later ones are measured.
  if (plan::crosses_steps(phase.plan)) {
    phase.warmup = executor.cheap ? 8 : 3;
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

}  // namespace

void for_each_phase(const Job& job, const Strategy& strategy, run::ExecutorTraits executor,
                    const std::function<void(TrainingStretch&)>& use) {
  const auto fused =
      plan::fused_workload(job.workload, job.cluster.device, strategy.compute_fusion);
  const Workload& workload = fused ? *fused : job.workload;
  for (const auto& part : plan::training_phases(strategy, job.training)) {
    TrainingStretch phase{workload, plan::make_plan(workload, job.cluster, strategy, part.point)};
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
