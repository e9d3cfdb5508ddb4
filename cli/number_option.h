// Numbers on the command line.
#pragma once

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdlib>

namespace syncline::cli {

// A number from `low` to `high`, in CLI::Range's words; that one takes nan for a number in every
// range.
inline CLI::Validator number_from(double low, double high) {
  const CLI::Range range(low, high);
  return CLI::Validator(
      [range](std::string& text) {
        const bool none = std::isnan(std::strtod(text.c_str(), nullptr));
        std::string word = none ? "inf" : text;  // in no range either
        std::string refusal = range(word);
        if (none) refusal.replace(refusal.find(word), word.size(), text);
        return refusal;
      },
      range.get_description());
}

}  // namespace syncline::cli
