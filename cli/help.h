// What --help prints. Of the program: its verbs, by what a user wants. Of a verb: one screen with
// its common options; --help-all adds the other groups.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace syncline::cli {

// In lines of at most so many columns.
std::shared_ptr<CLI::FormatterBase> help_within(std::size_t width);

// The group of the options that --help shows; others are shown by --help-all alone.
inline constexpr const char* kCommonOptions = "Options";

// What is called by its name: the program's verbs, or those of a verb.
std::vector<const CLI::App*> verbs_of(const CLI::App& app);

// Moves options of a verb to such a group.
void put_in_group(CLI::App& verb, const std::string& group, const std::vector<const char*>& names);

// Returns the words that an option accepts; empty: anything.
std::vector<std::string> choices_of(const CLI::Option& option);

}  // namespace syncline::cli
