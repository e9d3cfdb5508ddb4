// The time of a training to its target, by strategy, from predicted steps and measured curves. For
// people a table, verdicts and a figure; CSV has a line per strategy.
#pragma once

#include <string>
#include <vector>

#include "reports/answer.h"
#include "reports/chart/figure.h"
#include "studies/worth/time_to_target.h"

namespace syncline::reports {

// Returns plain sentences: the first at the target, its time and chance, the gains of the others.
std::vector<std::string> worth_verdicts(const worth::Worth& worth);

// Returns the quantity over the seconds of the training: lines of the fastest five and of the
// baseline.
chart::Figure worth_figure(const worth::Worth& worth);

// Returns the answer of `verb`.
Answer answer_of(const worth::Worth& worth, const std::string& verb);

}  // namespace syncline::reports
