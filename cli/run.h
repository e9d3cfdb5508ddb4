// `syncline run`: its options, and the ways to its two answers.
#pragma once

#include <string>
#include <vector>

#include "cli/objective.h"
#include "cli/output.h"
#include "cli/scenario_option.h"
#include "core/input/document.h"

namespace syncline::cli {

struct RunOptions {
  ScenarioOption scenario;
  std::vector<std::string> strategies;
  std::string executor = "model";
  OutputFormat format;
  std::string grain;
  std::string out;
  std::string trace;
  std::vector<std::string> trace_of;
  std::string html;
  std::string svg;
  int jobs = 1;
  std::string part;
  ObjectiveOptions objective;
};

// Each returns the exit code and throws InputError and MachineError.

// Rows by the time of a step.
int run_steps(const RunOptions& options, const input::Document& document);

// Strategies by the time of a training to its target.
int run_to_target(const RunOptions& options, const input::Document& document,
                  worth::Objective objective);

}  // namespace syncline::cli
