// The command line as typed: its mistakes in plain words, and its text for a shell.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace syncline::cli {

// Returns the command line with `version`, `help` and `help VERB` as the options that they stand
// for.
std::vector<const char*> as_options(int argc, const char* const* argv);

// `calibrate` without a verb of its own, as before it had any: with the one that its options mean,
// and --old-form with its name.
std::vector<const char*> with_verb_of_calibrate(std::vector<const char*> words);

// Before parsing: names an argument that is not UTF-8, or an unknown verb. Empty without a mistake.
std::string mistyped(const CLI::App& app, int argc, const char* const* argv);

// Why the parser failed, and the help to read.
std::string refusal(const CLI::App& app, const CLI::ParseError& error, int argc,
                    const char* const* argv);

// "syncline VERB ...", with each word quoted as a shell needs it. Once the verb was parsed.
std::string command_line(const CLI::App& verb);

}  // namespace syncline::cli
