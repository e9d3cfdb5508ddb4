// Candidates evaluated by an executor: one by one in this process, or many at once by a parallel
// map.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "core/measure/evaluate_strategy.h"
#include "core/run/jobs.h"

namespace syncline::tune {

class CandidateEvaluator {
 public:
  // The scenario and the cache must outlive this.
  CandidateEvaluator(const Scenario& scenario, collective::CostCache& cache,
                     measure::ExecutorFactory factory)
      : scenario_(scenario), cache_(cache), factory_(std::move(factory)) {}

  measure::Metrics cost(const Strategy& strategy);
  run::ExecutorTraits traits() { return executor().traits(); }

  // All of them by `map`, `piece` at a time; the first ones without a gap where interrupted.
  // `progress` is given candidates, not pieces.
  std::vector<measure::Metrics> evaluate_all(
      const std::vector<Strategy>& strategies, std::size_t piece, const run::ParallelMap& map,
      const std::function<void(std::size_t, std::size_t)>& progress,
      const std::function<bool()>& interrupted);

 private:
  // Made when it is first needed.
  run::Executor& executor();

  const Scenario& scenario_;
  collective::CostCache& cache_;
  measure::ExecutorFactory factory_;
  std::unique_ptr<run::Executor> executor_;
};

}  // namespace syncline::tune
