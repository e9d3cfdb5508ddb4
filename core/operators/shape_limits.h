// The largest sizes that a transformer may be given, in a scenario and in a model's own file:
// beyond what is trained, and small enough for every product of them to be counted.
#pragma once

#include <cstdint>

namespace syncline::operators {

inline constexpr std::int64_t kMostLayers = 2048;
inline constexpr std::int64_t kMostHidden = 1 << 20;
inline constexpr std::int64_t kMostHeads = 1 << 14;
inline constexpr std::int64_t kMostHeadWidth = 1 << 16;
inline constexpr std::int64_t kMostInner = 1 << 22;
inline constexpr std::int64_t kMostWords = 1 << 24;  // positions and classes too
inline constexpr std::int64_t kMostKinds = 1024;
// Of an image, in pixels of a side. Five halvings leave nothing of a smaller one.
inline constexpr std::int64_t kLeastImage = 32;
inline constexpr std::int64_t kMostImage = 4096;
inline constexpr double kMostElements = 1e15;  // of one tensor of a step

}  // namespace syncline::operators
