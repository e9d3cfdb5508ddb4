// The answer of `init`: a scenario to begin with, and what was assumed for it.
#pragma once

#include "imports/init.h"
#include "reports/answer.h"

namespace syncline::reports {

// Table: the scenario's name and the assumptions. CSV: one line an assumption. JSON: "assumed" and
// "strategies", by name.
Answer answer_of(const job::Begun& begun);

}  // namespace syncline::reports
