// What is wrong with a command line, in words that help: the parser's own, or better ones.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace syncline::cli {

// The command line with `version`, `help` and `help VERB` as the options that they stand for.
std::vector<const char*> as_options(int argc, const char* const* argv);

// Ahead of parsing: an argument that is not UTF-8, or a verb that there is not. Empty where neither
// is.
std::string mistyped(const CLI::App& app, int argc, const char* const* argv);

// What the parser failed on, and which help says more.
std::string refusal(const CLI::App& app, const CLI::ParseError& error, int argc,
                    const char* const* argv);

}  // namespace syncline::cli
