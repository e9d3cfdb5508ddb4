// Units inside Syncline: seconds, bytes, bytes per second, elements. Other units exist only at the
// borders: in JSON keys on input, in printers on output.
#pragma once

#include <cstdint>

namespace syncline {

using Seconds = double;
using Bytes = std::int64_t;
using BytesPerSecond = double;

inline constexpr double kMicrosecond = 1e-6;
inline constexpr double kMillisecond = 1e-3;
inline constexpr double kGigabitPerSecond = 1e9 / 8;  // bytes per second
inline constexpr double kGigabytePerSecond = 1e9;     // bytes per second
inline constexpr Bytes kKiB = Bytes{1} << 10;
inline constexpr Bytes kMiB = Bytes{1} << 20;
inline constexpr Bytes kGiB = Bytes{1} << 30;

}  // namespace syncline
