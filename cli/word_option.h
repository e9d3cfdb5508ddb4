// A word on the command line that is one of several.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "core/json/near_names.h"

namespace syncline::cli {

// For Option::transform: takes a word that means one of them beyond doubt as that one (same_name),
// and refuses others with what is near.
inline CLI::Validator one_of_words(const std::vector<std::string>& words) {
  const CLI::Validator known = CLI::IsMember(words);
  return CLI::Validator(
      [known, words](std::string& word) {
        word = same_name(word, words).value_or(word);
        const std::string told = known(word);
        return told.empty() ? told : told + did_you_mean(word, words);
      },
      known.get_description());
}

}  // namespace syncline::cli
