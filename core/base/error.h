// The two kinds of failure that a user can meet; cli/program.cc turns them into exit codes. Our own
// mistakes are assertions, and InternalError if found while the program runs.
#pragma once

#include <stdexcept>
#include <string>

namespace syncline {

// The input is wrong: the message names the file, the place, the value found and the allowed ones.
// The program ends with exit code 2 and writes nothing.
struct InputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The machine failed: the message names the call and the place. Exit code 3.
struct MachineError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace syncline
