// The command line as typed: messages about its mistakes, and its text for a shell.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace syncline::cli {

// Returns the command line with `version`, `help` and `help VERB` replaced by the options for them.
std::vector<const char*> as_options(int argc, const char* const* argv);

// Rewrites the old `calibrate [OPTIONS]`: inserts the sub-verb that its options belong to, and
// `--old-form NAME`.
std::vector<const char*> with_verb_of_calibrate(std::vector<const char*> words);

// Returns the words as the parser takes them, the last one first, without the program. It would
// split those in brackets at their commas, such as "[0,1]" of a command after "--": they get a
// mark, which drop_marks takes from the options' values.
std::vector<std::string> words_to_parse(const std::vector<const char*>& words);
void drop_marks(CLI::App& app);

// Names an argument that is not UTF-8, or an unknown verb, before parsing. Empty: no mistake.
std::string find_mistyped_word(const CLI::App& app, int argc, const char* const* argv);

// Returns the reason why the parser failed, and the help to read.
std::string refusal(const CLI::App& app, const CLI::ParseError& error, int argc,
                    const char* const* argv);

// Returns "syncline VERB ...", each word quoted for a shell. Requires that the verb was parsed.
std::string command_line(const CLI::App& verb);

}  // namespace syncline::cli
