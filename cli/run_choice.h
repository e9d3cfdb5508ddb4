// What of a sweep `run` works on: --part, the rows of this process, and --trace-of, those of a
// trace.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/input/document.h"
#include "core/measure/study.h"
#include "core/measure/tracing.h"

namespace syncline::cli {

// "3/8", or "auto": what Open MPI (OMPI_COMM_WORLD_RANK, _SIZE) or a Slurm array
// (SLURM_ARRAY_TASK_ID, _MIN, _COUNT) says. Throws InputError for anything else.
measure::Part part_of(const std::string& text);

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
