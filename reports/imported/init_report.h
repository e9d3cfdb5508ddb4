// The answer of `init`: a scenario to begin with, and its assumptions.
#pragma once

#include "imports/init.h"
#include "reports/answer.h"

namespace syncline::reports {

// Returns the answer. Table: the scenario's name and the assumptions. CSV: one line per assumption.
// JSON: "assumed" and "strategies", by name.
Answer answer_of(const job::Begun& begun);

}  // namespace syncline::reports
