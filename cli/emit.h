// The Python file that applies a strategy to a PyTorch job: pytorch/syncline_apply.py with the
// strategy's table in it, and what that was predicted to gain.
#pragma once

#include <string>
#include <string_view>

#include "core/measure/uncertainty.h"
#include "core/scenario/scenario.h"

namespace syncline::cli {

// `pinned`: what the scenario's calibration pinned down. Throws InputError, naming the strategy,
// where that file cannot carry it out.
std::string apply_file(const Scenario& scenario, const Strategy& strategy,
                       const measure::FitErrors& fit_errors);

// Writes it and says on stderr how a job uses it.
void write_apply_file(const std::string& file, const Scenario& scenario, const Strategy& strategy,
                      const measure::FitErrors& fit_errors);

// The dialect that the file belongs to.
inline constexpr std::string_view kPythonDialect = "pytorch";

// Throws InputError where --python names a file and `option` another dialect, or none.
void check_python(const std::string& file, const std::string& dialect, const std::string& option);

}  // namespace syncline::cli
