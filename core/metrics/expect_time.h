// The one guard before all output about a strategy.
#pragma once

#include "core/base/units.h"
#include "core/strategy.h"

namespace syncline::measure {

// Throws an InternalError that names the strategy unless the time is finite and above zero. No
// other time is printed, compared or made an interval of.
void expect_time(Seconds step, const Strategy& strategy);

}  // namespace syncline::measure
