// Conversion of a number to an index.
#pragma once

#include <cassert>
#include <concepts>
#include <cstddef>
#include <utility>

namespace syncline {

// Returns the number as an index. Requires one from 0 on, like ranks, streams and operations.
template <std::integral Number>
constexpr std::size_t index(Number number) {
  assert(std::in_range<std::size_t>(number) && "no place lies before the first");
  return static_cast<std::size_t>(number);
}

}  // namespace syncline
