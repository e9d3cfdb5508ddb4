#include "kernels/busy.h"

#include <cmath>
#include <string>

#include "kernels/busy_pace.h"

namespace syncline::kernels {
namespace {

// A running kernel cannot be stopped, and imitating one layer takes no longer.
constexpr double kMostSeconds = 60;

bool bad_time(double seconds) { return !(seconds >= 0 && seconds <= kMostSeconds); }

}  // namespace

Status check_occupation(const Occupation& occupation) {
  if (occupation.blocks < 0) {
    return failure("occupy: " + std::to_string(occupation.blocks) + " blocks");
  }
  if (occupation.threads < 32 || occupation.threads > 1024 || occupation.threads % 32 != 0) {
    return failure("occupy: " + std::to_string(occupation.threads) +
                   " threads a block; a multiple of 32 up to 1024");
  }
  if (bad_time(occupation.seconds)) return failure("occupy: the time is not in [0, 60] seconds");
  return {};
}

Status check_traffic(const Traffic& traffic) {
  if (traffic.blocks < 1) {
    return failure("move_bytes: " + std::to_string(traffic.blocks) + " blocks; at least one");
  }
  if (!(traffic.bytes_per_second >= 0) || !std::isfinite(traffic.bytes_per_second)) {
    return failure("move_bytes: the rate is negative or not finite");
  }
  if (bad_time(traffic.seconds)) return failure("move_bytes: the time is not in [0, 60] seconds");
  if (traffic.buffer == nullptr) return failure("move_bytes: the buffer is a null pointer");
  if (reinterpret_cast<std::uintptr_t>(traffic.buffer) % 16 != 0) {
    return failure("move_bytes: the buffer is not aligned to 16 bytes");
  }
  if (traffic.buffer_bytes / kPieceBytes < traffic.blocks) {
    return failure("move_bytes: a buffer of " + std::to_string(traffic.buffer_bytes) +
                   " bytes; at least " + std::to_string(kPieceBytes) + " for each of " +
                   std::to_string(traffic.blocks) + " blocks");
  }
  return {};
}

}  // namespace syncline::kernels
