// What tests ask of a text and of a program's end, with what was said in the failure, and of what
// is refused.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "core/base/error.h"

namespace syncline::test {

// Whether a text has all of these parts, or none of them; a failure names those that are wrong.
template <typename... Parts>
testing::AssertionResult parts_stand(bool wanted, const std::string& text, const Parts&... parts) {
  std::string wrong;
  for (const std::string& part : {std::string(parts)...}) {
    if ((text.find(part) != std::string::npos) != wanted) wrong += "  '" + part + "'\n";
  }
  if (wrong.empty()) return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << (wanted ? "should say\n" : "should not say\n") << wrong << "in\n"
         << text << "\n";
}
template <typename... Parts>
testing::AssertionResult says(const std::string& text, const Parts&... parts) {
  return parts_stand(true, text, parts...);
}
template <typename... Parts>
testing::AssertionResult lacks(const std::string& text, const Parts&... parts) {
  return parts_stand(false, text, parts...);
}

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

// It ended well, and says this all the same.
template <typename Ran>
testing::AssertionResult warned(const Ran& ran, const std::string& part) {
  return failed(ran, 0, part);
}

// Why it is refused; empty where it is not.
template <typename Body>
std::string input_error(Body body) {
  try {
    body();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace syncline::test
