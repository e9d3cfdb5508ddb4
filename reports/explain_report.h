// The answer of `syncline explain`: in words what each strategy does, what it is bound by, and
// which changes would gain most.
#pragma once

#include <vector>

#include "reports/answer.h"
#include "studies/explain/explanation.h"

namespace syncline::reports {

// Of those that fit, of all where none does; nullptr where nothing is explained.
const measure::Explained* fastest_of(const measure::Explanation& explanation);

// CSV: one line a strategy and change, with an empty change where none is worth making.
Answer answer_of(const measure::Explanation& explanation);

// What each strategy is bound by, what changes would gain, and its load on a fabric's links.
std::vector<Illustration> figures_of(const measure::Explanation& explanation);

}  // namespace syncline::reports
