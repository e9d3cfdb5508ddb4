// The Python of jobs that need torch, and how they are run beside other tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <sstream>
#include <string>

#include "tests/support/program.h"
#include "tests/support/scratch.h"

namespace syncline::test {

inline std::string python() {
  const char* named = std::getenv("SYNCLINE_PYTHON");
  return named != nullptr ? named : "/usr/bin/python3";
}

// Where `make test` has installed torch, a machine without it is a failure.
inline bool torch_is_missing() {
  if (shell(python() + " -c 'import torch'").code == 0) return false;
  EXPECT_EQ(std::getenv("SYNCLINE_NEEDS_TORCH"), nullptr) << python() << " finds no torch";
  return true;
}

// With a folder of its own; left out where torch is missing.
class WithTorch : public testing::Test {
 protected:
  void SetUp() override {
    if (torch_is_missing()) GTEST_SKIP() << "no torch in " << python();
  }

  const Scratch scratch_;
};

// A script in python/ that is to need nothing but torch: all that its lines import.
inline std::set<std::string> imported_by(const std::string& script) {
  std::set<std::string> modules;
  std::istringstream lines(script);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("import ") && !line.starts_with("from ")) continue;
    std::istringstream words(line);
    std::string first, module;
    words >> first >> module;
    modules.insert(module);
  }
  return modules;
}

// One thread a rank; `modules`: where what they import is.
inline Variables one_thread(const std::string& modules = SYNCLINE_SOURCE_DIR "/pytorch") {
  return {{"OMP_NUM_THREADS", "1"},
          {"OPENBLAS_NUM_THREADS", "1"},
          {"PYTHONDONTWRITEBYTECODE", "1"},
          {"PYTHONPATH", modules}};
}

}  // namespace syncline::test
