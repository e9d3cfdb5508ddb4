// Gradients in blocks of 128 numbers of 4 or 8 bits with a scale each, to the bit as
// core/compress/blocks.cc has them: encoded, decoded, and summed rank after rank in fp32, rounded
// once. A block is its scale, an fp32, and its codes, in words of 32 bits.
#pragma once

#include <cstdint>

#include "kernels/host_device.h"

namespace syncline::kernels {

enum class BlockFormat { kInt8, kInt4, kFp8, kFp8E5M2 };

constexpr std::int64_t kBlockElements = 128;

inline std::int64_t block_bytes(BlockFormat format) {
  return 4 + kBlockElements / (format == BlockFormat::kInt4 ? 2 : 1);
}

// `values` at multiples of 16 bytes, `blocks` of 4. Behind the last element a block holds zeros.
Status blocks_encode(BlockFormat format, const float* values, std::int64_t elements, void* blocks,
                     cudaStream_t stream);
Status blocks_decode(BlockFormat format, const void* blocks, float* values, std::int64_t elements,
                     cudaStream_t stream);

// What other ranks have sent, one after the other and `stride` bytes apart.
struct BlockParts {
  const void* first = nullptr;
  std::int64_t stride = 0;
  int count = 0;
};
// Adds them to `own`, so many blocks of each.
Status blocks_sum(BlockFormat format, void* own, const BlockParts& others, std::int64_t blocks,
                  cudaStream_t stream);

}  // namespace syncline::kernels
