// Step times in the output of a training.
#pragma once

#include <optional>
#include <string>

#include "core/base/units.h"

namespace syncline::cli {

// Returns Megatron's "elapsed time per iteration", "step time", a bar's it/s, tokens or samples a
// second; or what `own` finds, whose group is a time in seconds, or a rate where `rate`. Of the
// later three quarters the median; of a rate its inverse. Nothing: the output has none. Throws
// InputError for an expression that is none, or has no group.
std::optional<Seconds> step_in(const std::string& output, const std::string& own, bool rate);

}  // namespace syncline::cli
