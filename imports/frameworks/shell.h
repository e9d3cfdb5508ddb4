// A shell's text, read without being run: what its commands are given once variables, arrays,
// arithmetic and conditions stand for what they are. No program is started and no file looked at;
// arguments and variables that the text does not set are empty.
#pragma once

#include <string>
#include <vector>

namespace syncline::job::frameworks {

struct ShellReading {
  // Words of each command, in the order in which they would run. What nothing sets stays as it is
  // written ("$NAME", "$(nproc)").
  std::vector<std::vector<std::string>> commands;

  // A variable that holds flags.
  struct Flags {
    std::string name;
    std::vector<std::string> words;
    bool used = false;  // by a command, or by another variable
  };
  std::vector<Flags> variables;  // in the order in which they were last set

  std::vector<std::string> skipped;     // words "--name" of branches that are not taken
  std::vector<std::string> conditions;  // "[ $SIZE = 7B ] holds", where branches hang on them
  std::vector<std::string> chosen;      // where no value decides: "TP=1, the first of 1 2 4"
  std::vector<std::string> unset;       // variables that conditions ask for and nothing sets
};

ShellReading read_shell(const std::string& text);

// The words of a text that a shell splits: quotes hold together what is in them.
std::vector<std::string> split_words(const std::string& text);

// "$NAME", "${NAME}", "$1": a word that is nothing but a variable.
bool is_variable(const std::string& word);

}  // namespace syncline::job::frameworks
