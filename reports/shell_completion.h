// What makes a shell complete the program's command lines, of what its verbs take.
#pragma once

#include <string>
#include <vector>

namespace syncline::reports {

// One option or positional, as a shell has to know it.
struct CompletedWord {
  std::vector<std::string> names;  // "-o", "--out"; empty: a positional
  std::string about;
  bool takes_value = false;
  bool repeats = false;
  std::vector<std::string> choices;  // of its value; empty: anything, or a file
};

struct CompletedVerb {
  std::string name;
  std::string about;
  std::vector<CompletedWord> words;
};

// The shells that are known: bash, zsh, fish.
const std::vector<std::string>& shells();

// The file that such a shell reads. Requires one of these words.
std::string shell_completion(const std::vector<CompletedVerb>& verbs, const std::string& shell);

}  // namespace syncline::reports
