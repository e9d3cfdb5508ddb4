// The answer of `syncline explain`: each strategy's behaviour and bottleneck, and the changes that
// would gain most.
#pragma once

#include <vector>

#include "reports/answer.h"
#include "studies/explain/explanation.h"

namespace syncline::reports {

// Returns the fastest strategy of those that fit, of all if none does; nullptr if there are none.
const measure::Explained* fastest_of(const measure::Explanation& explanation);

// Returns the answer. CSV: one line per strategy and change; an empty change if there is none.
Answer answer_of(const measure::Explanation& explanation);

// Returns charts of bottlenecks, of the gains of changes, and of the load on a fabric's links.
std::vector<Illustration> figures_of(const measure::Explanation& explanation);

}  // namespace syncline::reports
