// The command line as it was given, to be repeated.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace syncline::cli {

// "syncline VERB ...", with each word quoted as a shell needs it. Once the verb was parsed.
std::string command_line(const CLI::App& verb);

}  // namespace syncline::cli
