// Prints --help. The program's help lists its verbs, grouped by a user's purpose. The help of a
// verb is one screen with its common options; --help-all adds the other groups.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace syncline::cli {

// Returns a formatter of help for lines of at most `width` columns.
std::shared_ptr<CLI::FormatterBase> help_within(std::size_t width);

// Group of the options that --help shows; only --help-all shows others.
inline constexpr const char* kCommonOptions = "Options";

// Returns the verbs of the program, or the sub-verbs of a verb.
std::vector<const CLI::App*> verbs_of(const CLI::App& app);

// Moves options of a verb to a group that only --help-all shows.
void put_in_group(CLI::App& verb, const std::string& group, const std::vector<const char*>& names);

// Returns the words that an option accepts; empty: anything.
std::vector<std::string> choices_of(const CLI::Option& option);

}  // namespace syncline::cli
