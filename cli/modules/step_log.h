// Step times in the output of a training.
#pragma once

#include <optional>
#include <string>

#include "core/base/units.h"

namespace syncline::cli {

// Returns a step's time from Megatron's "elapsed time per iteration", "step time", a bar's it/s, or
// tokens or samples per second. `own`: an expression instead, with a group for seconds, or for a
// rate if `rate`. Returns the median of the later three quarters (a rate's inverse); empty: none
// found. Throws InputError if `own` is no expression or has no group.
std::optional<Seconds> find_step_time(const std::string& output, const std::string& own, bool rate);

}  // namespace syncline::cli
