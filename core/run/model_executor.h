// The closed-form model: durations by formula, streams as queues, links shared fairly. Computes the
// expected time under jitter; ranks are alike. Never fails.
#pragma once

#include <memory>

#include "core/collective/price.h"
#include "core/run/executor.h"

namespace syncline::run {

std::unique_ptr<Executor> make_model_executor(const ExecutorSettings& settings);
// On a cluster whose links are others', shifted: what those cost is worked out once for both.
std::unique_ptr<Executor> make_shifted_model_executor(const Cluster& cluster,
                                                      const collective::LinkShift& shift);

}  // namespace syncline::run
