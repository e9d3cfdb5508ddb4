// The answer of `tune --utilisation`: utilisation of training by the bandwidth of links between
// groups, and the bandwidth that a wanted utilisation needs.
#pragma once

#include "reports/answer.h"
#include "reports/chart/figure.h"
#include "studies/layouts/utilisation.h"

namespace syncline::reports {

// Returns utilisation over the bandwidth between the groups, a line per strategy.
chart::Figure utilisation_figure(const tune::Utilisation& utilisation);

Answer answer_of(const tune::Utilisation& utilisation);

}  // namespace syncline::reports
