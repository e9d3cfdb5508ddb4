// --trace-of: which strategies, which sweep point and which ranks a trace shows.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/input/document.h"
#include "core/measure/tracing.h"

namespace syncline::cli {

// Adds --trace-of KEY=VALUE, as often as it is given.
void add_trace_of(CLI::App& verb, std::vector<std::string>& words);

// What the words choose; empty without any. What they leave open is the first value of each swept
// key, all of `strategies` and the executor's own ranks. Throws InputError where they name what is
// not there, and says what is.
std::optional<measure::TraceChoice> trace_choice(const std::vector<std::string>& words,
                                                 const input::Document& document,
                                                 const Scenario& scenario,
                                                 const std::vector<std::string>& strategies);

}  // namespace syncline::cli
