// Limits of all readers of files. A reader checks them before it parses a text or builds its
// content. Limits of fabrics are in core/fabric/kinds.h.
#pragma once

#include <cstddef>

namespace syncline {

inline constexpr long long kLargestFile = 64ll << 20;  // bytes

inline constexpr std::size_t kDeepest = 64;         // levels of a text
inline constexpr std::size_t kMaxLines = 20000;     // of settings: YAML, TOML, XML
inline constexpr std::size_t kMaxValues = 100'000;  // of settings; aliases repeat a value
inline constexpr std::size_t kMaxKeys = 5000;       // of one object of settings
inline constexpr std::size_t kLongestName = 255;    // of a host or a switch, as DNS has it

}  // namespace syncline
