// Training to a target, answered.
#pragma once

#include <optional>

#include "cli/objective.h"
#include "studies/worth/time_to_target.h"

namespace syncline::cli {

// Reads the objective's files. Throws InputError where options miss each other or the file of
// curves is none. Without an objective other than step_time there is none.
std::optional<worth::Objective> objective_of(const ObjectiveOptions& options);

// Prints strategies by the time of a training to its target.
void print_to_target(const TargetQuestion& question);

}  // namespace syncline::cli
