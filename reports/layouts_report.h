// The answer of `tune --layouts`.
#pragma once

#include <string>
#include <vector>

#include "reports/answer.h"
#include "studies/layouts/layouts.h"

namespace syncline::reports {

// The best layouts of a whole job: what each takes, where its step goes, what it needs of a GPU's
// memory, beside the layout that was given.

// What is best, how sure that is, and where its step is shorter than the given layout's.
std::vector<std::string> layout_verdicts(const tune::Layouts& layouts);

Answer answer_of(const tune::Layouts& layouts);

}  // namespace syncline::reports
