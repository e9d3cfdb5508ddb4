// What tests ask of a program's end, with what was said in the failure.
#pragma once

#include <gtest/gtest.h>

#include <string>

namespace syncline::test {

// It ended with this code, and says this on stderr.
template <typename Ran>
testing::AssertionResult failed(const Ran& ran, int code, const std::string& part) {
  const bool says = ran.err.find(part) != std::string::npos;
  if (ran.code == code && says) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "code " << ran.code << ", should say: " << part << "\n"
                                     << ran.out << ran.err;
}

// Wrong input.
template <typename Ran>
testing::AssertionResult refused(const Ran& ran, const std::string& part) {
  return failed(ran, 2, part);
}

}  // namespace syncline::test
