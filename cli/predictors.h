// The option that chooses a predictor.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "studies/questions/predictors.h"

namespace syncline::cli {

using questions::Predictor;
using questions::predictor_named;
using questions::predictors;

// Adds --executor, the choice of a predictor.
void add_executor(CLI::App& verb, std::string& name, const std::string& about);
}  // namespace syncline::cli
