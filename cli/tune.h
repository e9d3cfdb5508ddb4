// `syncline tune`: its options, and the ways to its answers.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <optional>
#include <string>

#include "cli/objective.h"
#include "cli/output.h"
#include "cli/scenario_option.h"
#include "cli/tune_live.h"
#include "core/input/document.h"
#include "core/tune/tuner.h"

namespace syncline::cli {

struct TuneVerbOptions {
  ScenarioOption scenario;
  std::string strategy;
  std::string emit;
  std::string python;
  std::string take;
  OutputFormat format;
  std::string svg;
  std::string html;
  std::string csv;
  std::string executor = "model";
  std::size_t top = 5;
  std::optional<std::size_t> budget;
  bool exhaustive = false;
  int jobs = 1;
  LiveVerbOptions live;
  ObjectiveOptions objective;
};

void add_tune_options(CLI::App& verb, TuneVerbOptions& options);

// How far the search goes, and by which executor.
tune::TuneOptions search_options(const TuneVerbOptions& verb);

// The best by the time of a training to its target. The exit code; throws InputError and
// MachineError.
int tune_to_target(const TuneVerbOptions& verb, const input::Document& document,
                   worth::Objective objective);

}  // namespace syncline::cli
