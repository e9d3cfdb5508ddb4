// What strategies are worth: the time of a training to its target, from steps that are predicted
// and curves that were measured. For people a table, verdicts and a figure; CSV has a line a
// strategy.
#pragma once

#include <string>
#include <vector>

#include "reports/answer.h"
#include "reports/chart/figure.h"
#include "studies/worth/time_to_target.h"

namespace syncline::reports {

// Who is there first, since when, and how sure that is: plain sentences.
std::vector<std::string> worth_verdicts(const worth::Worth& worth);

// Returns the quantity over the seconds of the training, a line a strategy: the fastest five and
// the baseline.
chart::Figure worth_figure(const worth::Worth& worth);

// `verb`: who asked.
Answer answer_of(const worth::Worth& worth, const std::string& verb);

}  // namespace syncline::reports
