// Where a report's figures come from, in sentences.
#pragma once

#include <optional>
#include <string>

#include "core/measure/report.h"

namespace syncline::reports {

// Which executor predicted the figures, and what they were fitted to.
std::string figures_sentence(const measure::Report& report);

// Which strategies change the training itself, about whose accuracy nothing is said. Empty if none.
std::string accuracy_sentence(const measure::Report& report);

// How far predictions are from published figures: those used for the fit, those not used, and each
// left out in turn. Empty where nothing was published to compare with.
std::string agreement_sentence(const measure::Report& report);

}  // namespace syncline::reports
