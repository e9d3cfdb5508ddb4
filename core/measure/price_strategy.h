// What one strategy costs: planned, run by an executor and measured, phase by phase of a training.
#pragma once

#include <functional>
#include <memory>

#include "core/collective/price.h"
#include "core/measure/metrics.h"
#include "core/plan/plan.h"
#include "core/run/executor.h"
#include "core/run/timeline.h"
#include "core/scenario/scenario.h"

namespace syncline::measure {

using ExecutorFactory = std::function<std::unique_ptr<run::Executor>(const run::ExecutorSettings&)>;

struct Priced {
  Metrics metrics;
  plan::Plan plan;  // of the first phase, and its timeline
  run::Timeline timeline;
};

// The scenario as it stands: a sweep point has been put in place already.
Priced price_strategy(const Scenario& scenario, const Strategy& strategy, run::Executor& executor,
                      collective::PriceBook& book);

}  // namespace syncline::measure
