// What training curves know of a tuning's alternatives: where their trainings ended.
#pragma once

#include <vector>

#include "core/tune/tuning.h"
#include "core/worth/curves.h"

namespace syncline::worth {

// Gives each alternative the outcome of the curves of its own name, or else of a strategy of the
// scenario that trains alike. Throws InputError where no curve belongs to any of them.
void add_outcomes(const std::vector<Curve>& curves, Quantity quantity, tune::Tuning& tuning);

}  // namespace syncline::worth
