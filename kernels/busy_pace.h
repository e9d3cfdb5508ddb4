// When a block that moves bytes at a rate may move on, and where: compiled into the kernel
// (busy.cu) and tested on the CPU.
#pragma once

#include "kernels/busy.h"

namespace syncline::kernels {

// What a block moves at a time: it reads this much and writes it, so it counts twice.
constexpr std::int64_t kPieceBytes = 16384;

Status check_occupation(const Occupation& occupation);
Status check_traffic(const Traffic& traffic);

// Pieces a block may have begun `nanoseconds` after its start: the first at once, then one for
// every piece that its share of the rate has paid for.
SYNCLINE_HOST_DEVICE inline double pieces_due(double bytes_per_second, int blocks,
                                              double nanoseconds) {
  return 1 + bytes_per_second * 1e-9 / blocks * nanoseconds / (2.0 * kPieceBytes);
}

// Where a block's piece lies: blocks take turns through the buffer, then begin again.
SYNCLINE_HOST_DEVICE inline std::int64_t piece_offset(std::int64_t buffer_bytes, int blocks,
                                                      int block, std::int64_t piece) {
  const std::int64_t pieces = buffer_bytes / kPieceBytes / blocks;  // of each block
  return (piece % pieces * blocks + block) * kPieceBytes;
}

}  // namespace syncline::kernels
