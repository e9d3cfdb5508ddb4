// What of a search's findings a job can apply by one Python file (core/dialect/pytorch_apply.h).
#pragma once

#include "core/tune/tuning.h"

namespace syncline::tune {

// The alternative that was asked for. Otherwise the best of what was found that the file can carry
// out: the choice, wherever it can be; the choice itself too where nothing can.
const Ranked& best_to_apply(const Tuning& tuning);

}  // namespace syncline::tune
