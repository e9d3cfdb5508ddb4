// The answer of `tune --layouts`.
#pragma once

#include <string>
#include <vector>

#include "reports/answer.h"
#include "studies/layouts/layouts.h"

namespace syncline::reports {

// The best layouts of a whole job compared with the given one: the time and parts of a step, and
// the memory of a GPU.

// Returns sentences: the best layout, its interval, how its step differs from the given one's.
std::vector<std::string> layout_verdicts(const tune::Layouts& layouts);

Answer answer_of(const tune::Layouts& layouts);

}  // namespace syncline::reports
