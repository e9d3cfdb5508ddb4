// --objective of run and tune: strategies by the time of a training to its target, which curves
// say, in place of the time of a step.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/worth/time_to_target.h"

namespace syncline::cli {

struct ObjectiveOptions {
  std::string objective = "step_time";
  std::optional<double> target;
  std::string curves;
  std::string measured;

  bool asked() const { return objective != "step_time"; }
};

void add_objective(CLI::App& verb, ObjectiveOptions& options);

// Curves whose ends are looked at, whatever their target.
struct Outcomes {
  worth::Quantity quantity = worth::Quantity::kAccuracy;
  std::vector<worth::Curve> curves;
};
Outcomes outcomes_of(const std::string& file);

// Throws InputError where options miss each other or the file of curves is none. Without an
// objective other than step_time there is none.
std::optional<worth::Objective> objective_of(const ObjectiveOptions& options);

}  // namespace syncline::cli
