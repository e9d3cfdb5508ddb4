// Training to a target: what run and tune rank strategies by in place of the time of a step. What
// answers `run` so is handed in by main (target.h).
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "cli/output.h"
#include "formats/input/document.h"

namespace syncline::cli {

inline constexpr const char* kTimeToLoss = "time_to_loss";
inline constexpr const char* kTimeToAccuracy = "time_to_accuracy";

struct ObjectiveOptions {
  std::string objective = "step_time";
  std::optional<double> target;
  std::string curves;
  std::string measured;

  bool asked() const { return objective != "step_time"; }
};

// Adds --objective, --target, --curves and --measured.
void add_objective(CLI::App& verb, ObjectiveOptions& options);

// Throws InputError where options miss each other.
void expect_whole(const ObjectiveOptions& options);

// `run` with an objective.
struct TargetQuestion {
  const input::Document& document;
  const ObjectiveOptions& objective;
  const std::string& executor;
  const std::string& svg;  // a file, or empty
  const Output& output;
};
using TargetAnswer = void (*)(const TargetQuestion&);

// Sets what answers; main calls it once.
void hand_in(TargetAnswer answer);

// Prints the answer.
void answer_to_target(const TargetQuestion& question);

}  // namespace syncline::cli
