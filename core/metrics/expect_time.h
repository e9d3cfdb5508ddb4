// The one guard in front of all that is said of a strategy.
#pragma once

#include "core/base/units.h"
#include "core/strategy.h"

namespace syncline::measure {

// What is finite and above zero, or an InternalError that names the strategy: nothing else is ever
// printed, compared or made an interval of.
void expect_time(Seconds step, const Strategy& strategy);

}  // namespace syncline::measure
