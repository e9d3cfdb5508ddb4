// `syncline tune --live`: the search on a machine, where each evaluation costs training steps.
#pragma once

#include <cstdint>
#include <string>

#include "cli/output.h"
#include "cli/ranks.h"
#include "core/input/document.h"
#include "core/tune/guides.h"

namespace syncline::cli {

struct LiveVerbOptions {
  std::string machine;      // "emulated": the closed-form model with noise; or a backend
  RanksOptions ranks;       // of a backend
  bool calibrate = false;   // its links first
  bool exhaustive = false;  // measures every candidate besides
  bool no_check = false;
  double noise = 2;         // percent of a step
  int steps = 50;           // training steps an evaluation
  std::size_t budget = 12;  // evaluations at most
  std::uint64_t seed = 1;
  std::string journal;  // file; empty: nothing is kept
  std::string wrong;    // "latency=2,bandwidth=0.5": the guiding model's error
  double pace = 0;      // seconds that an emulated second takes
  std::string emit;
  OutputFormat format;
  std::string html;
  std::string command;  // that resumes it, to be told to the user
};

// The options that go with --live. Those of the verb itself that exclude it must be there already.
void add_live_options(CLI::App& verb, LiveVerbOptions& options);

// Throws InputError for options that do not go together.
void check_live_options(const LiveVerbOptions& options);

// "latency=2,bandwidth=0.5": what the guiding model takes for the machine's, as factors of them.
// Throws InputError.
tune::GuideFactors guide_error(const std::string& text);

// The exit code. Throws InputError and MachineError.
int tune_live_verb(const LiveVerbOptions& options, const input::Document& document);

}  // namespace syncline::cli
