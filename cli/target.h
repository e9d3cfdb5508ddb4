// Answers `run` with an objective: training to a target.
#pragma once

#include "cli/objective.h"

namespace syncline::cli {

// Prints strategies by the time of a training to its target.
void print_to_target(const TargetQuestion& question);

}  // namespace syncline::cli
