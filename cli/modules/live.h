// The verbs of the module of ranks, and the search that `tune` has there.
#pragma once

#include <string>

#include "cli/verbs.h"

namespace syncline::input {
struct Document;
}  // namespace syncline::input

namespace syncline::cli {

struct TuneArguments;

VerbAction add_calibrate(CLI::App& verb);
VerbAction add_capture(CLI::App& verb);
VerbAction add_compare(CLI::App& verb);
VerbAction add_lab(CLI::App& verb);
VerbAction add_validate(CLI::App& verb);

// Searches on the ranks of a backend, or on emulated ones. `command`: what resumes the search, told
// to the user. Returns the exit code; throws InputError and MachineError.
int tune_live(const TuneArguments& arguments, const input::Document& document,
              const std::string& command);

}  // namespace syncline::cli
