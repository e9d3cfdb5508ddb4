// Answers questions about training to a target.
#pragma once

#include <optional>

#include "studies/questions/objective.h"
#include "studies/worth/time_to_target.h"

namespace syncline::questions {

// Reads the objective's files; nullopt for step_time. Throws InputError if an option lacks another,
// or the file of curves is not one.
std::optional<worth::Objective> objective_of(const ObjectiveOptions& options);

// Reads the curves of a CSV file.
std::vector<worth::Curve> read_curve_file(const std::string& file, worth::Quantity quantity,
                                          worth::Over over);

// Answers `run` with an objective, without a search of settings.
worth::Worth run_to_target(const input::Document& document, const ObjectiveOptions& objective,
                           const std::string& executor);

}  // namespace syncline::questions
