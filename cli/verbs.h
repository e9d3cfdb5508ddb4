// The verbs of the command line, one file each. A verb declares its options on its subcommand and
// gives what is to be done once they are parsed; answers go to stdout, talk to stderr.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace syncline::cli {

// Carries the verb out; gives the exit code (0, or 130 after Ctrl-C).
using VerbAction = std::function<int()>;

VerbAction add_run(CLI::App& app);
VerbAction add_plan(CLI::App& app);
VerbAction add_buckets(CLI::App& app);
VerbAction add_explain(CLI::App& app);
VerbAction add_emit(CLI::App& app);
VerbAction add_check(CLI::App& app);
VerbAction add_fidelity(CLI::App& app);
VerbAction add_init(CLI::App& app);
VerbAction add_list(CLI::App& app);
VerbAction add_tune(CLI::App& app);
VerbAction add_calibrate(CLI::App& app);
VerbAction add_validate(CLI::App& app);
VerbAction add_import(CLI::App& app);
VerbAction add_record(CLI::App& app);
VerbAction add_compare(CLI::App& app);
VerbAction add_lab(CLI::App& app);
VerbAction add_schema(CLI::App& app);
VerbAction add_completion(CLI::App& app);

// The whole program: parses, runs the verb, and turns each kind of failure into its message and
// exit code: 2 for wrong input, 3 for a failing machine.
int run_program(int argc, const char* const* argv);

}  // namespace syncline::cli
