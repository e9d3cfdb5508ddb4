// The two kinds of failure that a user can meet. Each is caught once, in cli/main.
// Our own mistakes are assertions, not exceptions.
#pragma once

#include <stdexcept>
#include <string>

namespace syncline {

// The input is wrong: the message names the file, the place, what was found and what is allowed.
// The program ends with exit code 2 and writes nothing.
struct InputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The machine failed: the message names the call and where it failed. Exit code 3.
struct MachineError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace syncline
