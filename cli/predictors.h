// Predictors by name, each of which gives a plan's time: rows that main hands in, and the option
// that chooses one.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/metrics.h"

namespace syncline::cli {

struct Predictor {
  std::string_view name;
  std::string_view summary;
  measure::ExecutorFactory make;
};

// Sets the table. main calls it once.
void hand_in(std::vector<Predictor> rows);

// The table, in the order in which it was handed in.
const std::vector<Predictor>& predictors();

// Requires one of their names, which --executor has checked.
const Predictor& predictor_named(std::string_view name);

// Adds --executor: which one predicts.
void add_executor(CLI::App& verb, std::string& name, const std::string& about);
}  // namespace syncline::cli
