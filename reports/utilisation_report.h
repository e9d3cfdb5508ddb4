// The answer of `tune --utilisation`.
#pragma once

#include "reports/answer.h"
#include "reports/chart/figure.h"
#include "studies/layouts/utilisation.h"

namespace syncline::reports {

// How busy training is at the links between groups, and what those must carry for it to be as busy
// as asked: `tune --utilisation`.

// Utilisation over the bandwidth between the groups, a line a strategy.
chart::Figure utilisation_figure(const tune::Utilisation& utilisation);

Answer answer_of(const tune::Utilisation& utilisation);

}  // namespace syncline::reports
