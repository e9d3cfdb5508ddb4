// The closed-form model: durations by formula, streams as queues, links shared fairly. Computes the
// expected time under jitter; ranks are alike. Never fails.
#pragma once

#include <memory>

#include "core/collective/cost.h"
#include "core/run/executor.h"

namespace syncline::run {

std::unique_ptr<Executor> make_model_executor(const ExecutorSettings& settings);
// On the cache's cluster, with its costs.
std::unique_ptr<Executor> model_executor_on(std::shared_ptr<collective::CostCache> cache);

}  // namespace syncline::run
