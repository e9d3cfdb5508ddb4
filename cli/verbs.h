// The verbs of the command line, one file each. A verb declares its options on its subcommand and
// returns its action for after parsing. Answers go to stdout, messages to stderr.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace syncline::cli {

// Runs the verb; returns the exit code (0, or 130 after Ctrl-C).
using VerbAction = std::function<int()>;

// Declares a verb's options on its subcommand.
using AddVerb = VerbAction (*)(CLI::App& verb);

VerbAction add_buckets(CLI::App& verb);
VerbAction add_check(CLI::App& verb);
VerbAction add_completion(CLI::App& verb);
VerbAction add_emit(CLI::App& verb);
VerbAction add_explain(CLI::App& verb);
VerbAction add_fidelity(CLI::App& verb);
VerbAction add_list(CLI::App& verb);
VerbAction add_plan(CLI::App& verb);
VerbAction add_record(CLI::App& verb);
VerbAction add_run(CLI::App& verb);
VerbAction add_schema(CLI::App& verb);
VerbAction add_tune(CLI::App& verb);

// Runs the whole program: parses, runs the verb, and turns each kind of failure into its message
// and exit code: 2 for wrong input, 3 for a failing machine.
int run_program(int argc, const char* const* argv);

}  // namespace syncline::cli
