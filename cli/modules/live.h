// The verbs of the module of ranks, and tune's search there.
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

// Searches on the ranks of a backend, or on emulated ones. `command` resumes the search; the user
// sees it. Returns the exit code. Throws InputError and MachineError.
int tune_live(const TuneArguments& arguments, const input::Document& document,
              const std::string& command);

}  // namespace syncline::cli
