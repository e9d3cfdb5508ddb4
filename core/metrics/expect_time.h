// The one guard before all output about a strategy.
#pragma once

#include "core/base/units.h"
#include "core/strategy.h"

namespace syncline::measure {

// Throws an InternalError that names the strategy unless the time is finite and above zero. Every
// time passes it before it is printed, compared or given an interval.
void expect_time(Seconds step, const Strategy& strategy);

}  // namespace syncline::measure
