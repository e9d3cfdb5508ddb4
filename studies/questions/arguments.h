// The arguments of a question as a table: options of the command line and keywords in Python follow
// from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "formats/json/json.h"

namespace syncline::questions {

struct Argument {
  // Pointer to the value; its first value is the default.
  using Value =
      std::variant<std::string*, std::vector<std::string>*, bool*, int*,
                   std::optional<std::size_t>*, std::optional<double>*, std::vector<std::int64_t>*>;

  std::string name;  // "line-rate": --line-rate, and line_rate in Python
  Value value;
  std::string help;
  std::vector<std::string> words = {};  // that are allowed; empty: all
  double low = 0, high = 0;             // limits of a number; none if they are equal
  std::size_t thousand = 0;             // factor for a k after a whole number; 0: none
  std::string shown = {};               // the default, if the value does not say it
  bool file = false;                    // the text names one
  std::string group = {};               // in the help; empty: among the common ones
};
using Arguments = std::vector<Argument>;

// No limit above.
inline constexpr double kUnlimited = 1e15;

// Returns "line_rate" for "line-rate".
std::string keyword(const Argument& argument);

// Returns [{"name", "option", "default", "help"}]; the default is null if there is none.
Json describe_arguments(const Arguments& arguments);

}  // namespace syncline::questions
