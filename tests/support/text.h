// What tests of messages ask of a text.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace syncline::test {

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Whether one of them does.
inline bool any_contains(const std::vector<std::string>& list, const std::string& part) {
  return std::ranges::any_of(list, [&](const auto& text) { return contains(text, part); });
}

}  // namespace syncline::test
