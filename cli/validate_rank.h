// `syncline validate` on one rank: the run, and what rank 0 prints and writes of it.
#pragma once

#include <string>
#include <vector>

#include "cli/output.h"
#include "cli/ranks.h"
#include "cli/scenario_option.h"
#include "core/input/document.h"
#include "core/scenario/scenario.h"

namespace syncline::cli {

struct ValidateOptions {
  ScenarioOption scenario;
  std::string backend = "gloo";
  RanksOptions ranks;
  std::string executor = "model";
  OutputFormat format;
  std::string out;
  std::string cluster_out;
  std::string trace;
  std::string html;
  std::vector<std::string> only;
  bool calibrate = false;
  bool no_check = false;
  std::string values = "integers";
  int warmup = 2;
  int repeats = 9;
};

// Runs the scenario's strategies. The rank's exit code; throws InputError and MachineError.
int validate_rank(const ValidateOptions& options, const input::Document& document,
                  const Scenario& scenario, live::ControlChannel& channel);

}  // namespace syncline::cli
