// The host executor: every transfer of every round really moves floats between the ranks' arrays in
// this process. It knows no time; it is the truth for values and for bytes on the wire.
#pragma once

#include <memory>

#include "core/run/executor.h"

namespace syncline::run {

// `workload` has the shapes behind the plan's buckets and must outlive the executor.
std::unique_ptr<Executor> make_host_executor(const Workload& workload);

}  // namespace syncline::run
