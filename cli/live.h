// `syncline tune --live`: the search on a machine, where each evaluation costs training steps.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "cli/ranks.h"
#include "core/input/document.h"

namespace syncline {

struct LiveVerbOptions {
  std::string machine;      // "emulated": the closed-form model with noise; or a backend
  RanksOptions ranks;       // of a backend
  bool calibrate = false;   // its links first
  bool exhaustive = false;  // measures every candidate besides
  bool no_check = false;
  double noise = 2;  // percent of a step
  int steps = 50;    // training steps an evaluation
  int budget = 12;   // evaluations at most
  std::uint64_t seed = 1;
  std::string journal;  // file; empty: nothing is kept
  std::string wrong;    // "latency=2,bandwidth=0.5": the guiding model's error
  double pace = 0;      // seconds that an emulated second takes
  std::string emit;
  std::string format = "text";
  std::string command;  // that resumes it, to be told to the user
};

// The exit code. Throws InputError and MachineError.
int tune_live_verb(const LiveVerbOptions& options, const Document& document,
                   const std::function<bool()>& interrupted);

}  // namespace syncline
