// Training to a target: the objective by which run and tune rank strategies instead of the time of
// a step. main hands in the function that answers `run` with an objective (target.h).
#pragma once

#include <string>

#include "cli/output.h"
#include "formats/input/document.h"
#include "studies/questions/objective.h"

namespace syncline::cli {

using questions::ObjectiveOptions;

// `run` with an objective.
struct TargetQuestion {
  const input::Document& document;
  const ObjectiveOptions& objective;
  const std::string& executor;
  const std::string& svg;  // a file, or empty
  const Output& output;
};
using TargetAnswer = void (*)(const TargetQuestion&);

// Sets the function that answers; main calls it once.
void hand_in(TargetAnswer answer);

// Prints the answer.
void answer_to_target(const TargetQuestion& question);

}  // namespace syncline::cli
