// Command lines as people write them: words, quotes, lines that go on behind a backslash, comments.
// Variables, branches, loops and here-documents need a shell: they are named, not guessed.
#pragma once

#include <string>
#include <vector>

namespace syncline::job::frameworks {

struct ShellLines {
  // Words of each command; a variable stays as it is written. Redirections, assignments and the
  // script's own arguments ("$@") are left out.
  std::vector<std::vector<std::string>> commands;
  std::string asks;  // for a shell: "the variable $TP in line 3"; empty: nothing does
};

ShellLines read_shell_lines(const std::string& text);

// Words of a text that a shell splits: quotes hold together what is in them.
std::vector<std::string> split_words(const std::string& text);

}  // namespace syncline::job::frameworks
