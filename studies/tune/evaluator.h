// Evaluates a scenario's strategies by one executor with one cache of collectives' costs. Runs many
// independent pieces of work, in this process or in several.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "core/metrics.h"
#include "core/run/jobs.h"

namespace syncline::tune {

class Evaluator {
 public:
  // Stores the scenario. Requires that it outlives this.
  explicit Evaluator(const Scenario& scenario,
                     measure::ExecutorFactory factory = run::make_model_executor)
      : scenario_(scenario), factory_(std::move(factory)), cache_(scenario.cluster) {}

  measure::Evaluated evaluate(const Strategy& strategy);
  measure::Metrics metrics_of(const Strategy& strategy) { return evaluate(strategy).metrics; }
  Seconds step_time(const Strategy& strategy) { return metrics_of(strategy).step_time; }
  const Scenario& scenario() const { return scenario_; }
  run::ExecutorTraits traits() { return executor().traits(); }
  collective::CostCache& cache() { return cache_; }

 private:
  // Returns the executor, created on first use: never if only other processes evaluate.
  run::Executor& executor();

  const Scenario& scenario_;
  measure::ExecutorFactory factory_;
  collective::CostCache cache_;
  std::unique_ptr<run::Executor> executor_;
};

// Returns bytes_of(0) to bytes_of(count - 1), concatenated; the first ones if interrupted. `map`,
// which may be empty, computes `piece` of these items at a time. The hooks count items, not pieces.
std::string in_pieces(std::size_t count, std::size_t piece, const run::ParallelMap& map,
                      const std::function<std::string(std::size_t)>& bytes_of,
                      const run::JobHooks& hooks);

}  // namespace syncline::tune
