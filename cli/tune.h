// `syncline tune`: its options, and the search on a machine. There an evaluation costs training
// steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/objective.h"
#include "cli/options.h"
#include "cli/output.h"
#include "formats/input/document.h"
#include "formats/scenario/scenario.h"
#include "studies/questions/tune.h"
#include "studies/rows/uncertainty.h"

namespace syncline::cli {

// Value of --live for the model with noise.
inline constexpr std::string_view kEmulated = "emulated";

struct LiveOptions {
  std::string machine;  // "emulated": the closed-form model with noise; or a backend; empty: none
  RanksOptions ranks;   // a backend's ranks
  bool calibrate = false;  // measures the backend's links first
  bool no_check = false;
  double noise = 2;  // percent of a step
  int steps = 50;    // training steps per evaluation
  std::uint64_t seed = 1;
  std::string journal;    // file; empty: none
  std::string wrong;      // "latency=2,bandwidth=0.5": the guiding model's error
  double time_scale = 0;  // real seconds per emulated second
};

struct TuneArguments : questions::Tune {
  ScenarioOption scenario;
  std::string python;
  Output output;
  std::string svg;
  std::string csv;
  LiveOptions live;
};

// Returns the Python file that applies a strategy to a PyTorch job: pytorch/syncline_apply.py with
// the strategy's table and its predicted gain. `fit_errors`: of the scenario's calibration. Throws
// InputError, which names the strategy, if that file cannot apply it.
std::string apply_file(const Scenario& scenario, const Strategy& strategy,
                       const measure::FitErrors& fit_errors);

// Writes apply_file() to `file` and prints its use in a job on stderr.
void write_apply_file(const std::string& file, const Scenario& scenario, const Strategy& strategy,
                      const measure::FitErrors& fit_errors);

// The dialect that the file belongs to.
inline constexpr std::string_view kPythonDialect = "pytorch";

// Throws InputError if --python names a file and `option` another dialect, or none.
void check_python(const std::string& file, const std::string& dialect, const std::string& option);

}  // namespace syncline::cli
