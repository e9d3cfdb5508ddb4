// A verb run inside the test's own process, and what it said.
#pragma once

#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "cli/verbs.h"

namespace syncline::test {

struct Said {
  int code = 0;
  std::string out;
  std::string err;
};

inline Said say(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "syncline");
  std::vector<const char*> argv;
  for (const auto& argument : arguments) argv.push_back(argument.c_str());
  std::ostringstream out;
  std::ostringstream err;
  auto* const old_out = std::cout.rdbuf(out.rdbuf());
  auto* const old_err = std::cerr.rdbuf(err.rdbuf());
  const int code = cli::run_program(static_cast<int>(argv.size()), argv.data());
  std::cout.rdbuf(old_out);
  std::cerr.rdbuf(old_err);
  return {code, out.str(), err.str()};
}

}  // namespace syncline::test
