// The command line as it was given: what is wrong with it, in words that help, and how it is
// repeated.
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

// Text as a shell reads it as one word.
std::string shell_word(const std::string& text);

// "syncline VERB ...", with each word quoted as a shell needs it. Once the verb was parsed.
std::string command_line(const CLI::App& verb);

}  // namespace syncline::cli
