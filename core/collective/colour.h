// Colours for colour refinement (Weisfeiler and Leman 1968; the coarsest equitable partition): what
// is alike in everything that it touches ends up with the same colour, and is then handled once.
#pragma once

#include <cstdint>
#include <cstring>

namespace syncline::collective {

using Colour = std::uint64_t;

// A hash of both; the order matters (the finaliser of MurmurHash3).
inline Colour mix(Colour a, Colour b) {
  a ^= b + 0x9e3779b97f4a7c15ULL + (a << 6U) + (a >> 2U);
  a *= 0xff51afd7ed558ccdULL;
  return a ^ (a >> 33U);
}

// A value as it lies in memory.
inline Colour bits(double value) {
  Colour out = 0;
  std::memcpy(&out, &value, sizeof out);
  return out;
}

}  // namespace syncline::collective
