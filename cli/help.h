// What --help prints. Of the program: its verbs, by what a user wants. Of a verb: one screen with
// its common options; --help-all adds the other groups.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>
#include <vector>

namespace syncline::cli {

class Help : public CLI::FormatterBase {
 public:
  // Lines of at most `width` columns.
  explicit Help(std::size_t width) : width_(width) {}

  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;

 private:
  std::string of_program(const CLI::App& app, CLI::AppFormatMode mode) const;
  std::string of_verb(const CLI::App& verb, const std::string& name, CLI::AppFormatMode mode) const;

  std::size_t width_;
};

// The group of the options that --help shows; others are shown by --help-all alone.
inline constexpr const char* kCommonOptions = "Options";

// Moves options of a verb to such a group.
void put_in_group(CLI::App& verb, const std::string& group, const std::vector<const char*>& names);

// The words that an option accepts; empty: anything.
std::vector<std::string> choices_of(const CLI::Option& option);

}  // namespace syncline::cli
