// Any bytes are a scenario that can be evaluated or an InputError. What is large is left out: there
// only the time would be tested.
#include <cmath>

#include "core/executor.h"
#include "core/metrics.h"
#include "core/metrics/bound.h"
#include "core/plan.h"
#include "formats/input/document.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/json_mutator.h"

namespace {

using namespace syncline;

bool is_small(const Scenario& scenario) {
  const Workload& workload = scenario.workload;
  return scenario.cluster.ranks() <= 16 &&
         workload.tensors.size() + workload.buffers.size() <= 16 &&
         workload.operators->operators.size() <= 64 && workload.micro_batches <= 4 &&
         scenario.simulation.periods.value_or(1) <= 8 && scenario.strategies.size() <= 4;
}

bool is_short(const Scenario& scenario, const Strategy& strategy) {
  if (scenario.training.steps.value_or(1) > 1000) return false;
  const auto phases = plan::training_phases(strategy, scenario.training);
  const LocalSgd& local = strategy.local_sgd;
  return phases.size() <= 24 &&
         (!local.enabled || (local.period <= 16 && local.max_period <= 16)) &&
         strategy.partition == 0;
}

}  // namespace

SYNCLINE_FUZZ_TARGET(cost, bytes) {
  const Scenario scenario = input::parse_scenario(input::document_from_text("fuzzed.json", bytes));
  if (!is_small(scenario)) return;
  const auto model =
      run::make_model_executor({scenario.cluster, scenario.simulation, scenario.seed});
  collective::CostCache cache(scenario.cluster);
  for (const Strategy& strategy : scenario.strategies) {
    if (!is_short(scenario, strategy)) continue;
    const auto metrics = measure::evaluate_strategy(scenario, strategy, *model, cache).metrics;
    const Seconds bound = measure::lower_bound_of(scenario, strategy, metrics.step_time, cache);
    if (!(metrics.step_time >= 0 && bound >= 0)) std::abort();
  }
}
