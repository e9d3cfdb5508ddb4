// A mistake of our own, found while the program runs, so that no wrong result is used. The input is
// right; the message names the strategy. Exit code 3.
#pragma once

#include <stdexcept>
#include <string>

namespace syncline {

struct InternalError : std::logic_error {
  explicit InternalError(const std::string& what) : std::logic_error("internal error: " + what) {}
};

}  // namespace syncline
