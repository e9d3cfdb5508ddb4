// What tests of messages ask of a text.
#pragma once

#include <string>

namespace syncline::test {

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace syncline::test
