// Command lines as people write them: words, quotes, lines continued by a backslash, comments.
// Variables, branches, loops and here-documents need a shell: they are named, not guessed.
#pragma once

#include <string>
#include <vector>

namespace syncline::job::frameworks {

struct ShellLines {
  // Words of each command; a variable stays as it is written. Excludes redirections, assignments
  // and the script's own arguments ("$@").
  std::vector<std::vector<std::string>> commands;
  std::string asks;  // the part that needs a shell: "the variable $TP in line 3"; empty: none
};

ShellLines read_shell_lines(const std::string& text);

// Splits a text into words as a shell does: quotes hold words together.
std::vector<std::string> split_words(const std::string& text);

}  // namespace syncline::job::frameworks
