// The verbs of the module that reads jobs.
#pragma once

#include "cli/verbs.h"

namespace syncline::cli {

VerbAction add_init(CLI::App& verb);
VerbAction add_import(CLI::App& verb);

}  // namespace syncline::cli
