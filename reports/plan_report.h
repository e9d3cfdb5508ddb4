// The operations of a strategy, as `plan` prints them.
#pragma once

#include "reports/answer.h"
#include "studies/questions/plan.h"

namespace syncline::reports {

// Returns the answer. Requires that `planned` outlives it.
Answer answer_of(const questions::Planned& planned);

}  // namespace syncline::reports
