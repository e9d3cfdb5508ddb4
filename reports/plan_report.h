// The operations of a strategy, as `plan` prints them.
#pragma once

#include "reports/answer.h"
#include "studies/questions/plan.h"

namespace syncline::reports {

// `planned` must outlive the answer.
Answer answer_of(const questions::Planned& planned);

}  // namespace syncline::reports
