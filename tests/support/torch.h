// The Python of jobs that need torch, and how they are run beside other tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/support/program.h"

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

// One thread a rank; `modules`: where what they import is.
inline Variables one_thread(const std::string& modules = SYNCLINE_SOURCE_DIR "/pytorch") {
  return {{"OMP_NUM_THREADS", "1"},
          {"OPENBLAS_NUM_THREADS", "1"},
          {"PYTHONDONTWRITEBYTECODE", "1"},
          {"PYTHONPATH", modules}};
}

}  // namespace syncline::test
