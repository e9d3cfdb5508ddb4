// Candidates priced by an executor: one by one in this process, or many at once by a parallel map.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "core/measure/price_strategy.h"
#include "core/run/jobs.h"

namespace syncline {

class CandidatePricer {
 public:
  // The scenario and the book must outlive this.
  CandidatePricer(const Scenario& scenario, PriceBook& book, ExecutorFactory factory)
      : scenario_(scenario), book_(book), factory_(std::move(factory)) {}

  Metrics price(const Strategy& strategy);
  ExecutorTraits traits() { return executor().traits(); }

  // All of them by `map`, `piece` at a time; the first ones without a gap where interrupted.
  // `progress` is given candidates, not pieces.
  std::vector<Metrics> price_all(const std::vector<Strategy>& strategies, std::size_t piece,
                                 const ParallelMap& map,
                                 const std::function<void(std::size_t, std::size_t)>& progress,
                                 const std::function<bool()>& interrupted);

 private:
  // Made when it is first needed.
  Executor& executor();

  const Scenario& scenario_;
  PriceBook& book_;
  ExecutorFactory factory_;
  std::unique_ptr<Executor> executor_;
};

}  // namespace syncline
