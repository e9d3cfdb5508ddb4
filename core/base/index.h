// A number of something as a place in a container.
#pragma once

#include <cassert>
#include <concepts>
#include <cstddef>
#include <utility>

namespace syncline {

// Requires a number that is not negative: ranks, streams, buckets and operations count from 0.
template <std::integral Number>
constexpr std::size_t index(Number number) {
  assert(std::in_range<std::size_t>(number) && "no place lies before the first");
  return static_cast<std::size_t>(number);
}

}  // namespace syncline
