// Training to a target, answered.
#pragma once

#include <optional>

#include "studies/questions/objective.h"
#include "studies/worth/time_to_target.h"

namespace syncline::questions {

// Reads the objective's files. Throws InputError where options miss each other or the file of
// curves is none. Without an objective other than step_time there is none.
std::optional<worth::Objective> objective_of(const ObjectiveOptions& options);

// The curves of a CSV file.
std::vector<worth::Curve> curves_in(const std::string& file, worth::Quantity quantity,
                                    worth::Over over);

// `run` with an objective: the strategies as they stand.
worth::Worth run_to_target(const input::Document& document, const ObjectiveOptions& objective,
                           const std::string& executor);

}  // namespace syncline::questions
