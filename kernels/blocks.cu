#include "kernels/kernels.h"

#include "kernels/launch.h"

namespace syncline::kernels {
namespace {

constexpr int kLanes = 8;                       // threads per block of numbers
constexpr int kUnits = kBlockThreads / kLanes;  // blocks of numbers at a time
constexpr int kOwn = kBlockElements / kLanes;   // numbers per thread
constexpr std::uint32_t kNotANumber = 0x7fc00000u;

SYNCLINE_HOST_DEVICE inline float power_of_two(int exponent) {
  return float_of(static_cast<std::uint32_t>(127 + exponent) << 23);
}

// Codes for integers from -kMax to kMax.
template <int kMax, int kBitsOfOne>
struct WholeCode {
  static constexpr int kBits = kBitsOfOne;
  SYNCLINE_HOST_DEVICE static float largest() { return static_cast<float>(kMax); }

  SYNCLINE_HOST_DEVICE static std::uint32_t code(float value) {
    const float most = largest();
    const float within = value < -most ? -most : value > most ? most : value;
    return static_cast<std::uint32_t>(static_cast<int>(rintf(within))) & ((1u << kBits) - 1);
  }
  SYNCLINE_HOST_DEVICE static float value(std::uint32_t code) {
    const bool negative = (code >> (kBits - 1)) != 0;
    return static_cast<float>(static_cast<int>(code) - (negative ? 1 << kBits : 0));
  }
};

// Codes of an 8-bit float without infinities, subnormal below its smallest exponent.
template <int kMantissa, int kBias, int kLast>
struct SmallFloat {
  static constexpr int kBits = 8;
  SYNCLINE_HOST_DEVICE static float largest() { return value(kLast); }

  // Returns the nearest code, or the even one of two that are equally near.
  SYNCLINE_HOST_DEVICE static std::uint32_t code(float value) {
    const std::uint32_t sign = bits_of(value) >> 31 << 7;
    float size = float_of(bits_of(value) & 0x7fffffffu);
    size = size < largest() ? size : largest();
    int exponent = static_cast<int>(bits_of(size) >> 23) - 127;
    if (exponent < 1 - kBias) exponent = 1 - kBias;
    const int whole = static_cast<int>(rintf(size * power_of_two(kMantissa - exponent)));
    const int code = ((exponent + kBias - 1) << kMantissa) + whole;
    return static_cast<std::uint32_t>(code) | sign;
  }
  SYNCLINE_HOST_DEVICE static float value(std::uint32_t code) {
    const int exponent = static_cast<int>(code & 0x7fu) >> kMantissa;
    const int fraction = static_cast<int>(code) & ((1 << kMantissa) - 1);
    const int whole = exponent == 0 ? fraction : fraction + (1 << kMantissa);
    const int scale = (exponent > 1 ? exponent : 1) - kBias - kMantissa;
    const float size = static_cast<float>(whole) * power_of_two(scale);
    return (code & 0x80u) != 0 ? -size : size;
  }
};

template <typename Code>
struct Layout {
  static constexpr int kPerWord = 32 / Code::kBits;
  static constexpr int kWords = kOwn / kPerWord;  // per thread
  static constexpr int kUnitWords = 1 + kLanes * kWords;

  // Returns a thread's word number i within its block, and the first element in that word.
  SYNCLINE_HOST_DEVICE static int word(int lane, int i) { return 1 + lane + kLanes * i; }
  SYNCLINE_HOST_DEVICE static int element(int lane, int i) {
    return kPerWord * (lane + kLanes * i);
  }
};

struct Own {
  float at[kOwn];
};

template <typename Code>
SYNCLINE_HOST_DEVICE inline void add_decoded(const std::uint32_t* unit, int lane, bool first,
                                             Own& to) {
  using Shape = Layout<Code>;
  const float scale = float_of(unit[0]);
  SYNCLINE_UNROLL
  for (int i = 0; i < Shape::kWords; ++i) {
    const std::uint32_t word = unit[Shape::word(lane, i)];
    SYNCLINE_UNROLL
    for (int j = 0; j < Shape::kPerWord; ++j) {
      const std::uint32_t code = word >> (j * Code::kBits) & ((1u << Code::kBits) - 1);
      const float value = scale * Code::value(code);
      float& sum = to.at[i * Shape::kPerWord + j];
      sum = first ? value : sum + value;
    }
  }
}

template <typename Code>
SYNCLINE_HOST_DEVICE inline void read_values(const float* values, std::int64_t elements,
                                             std::int64_t begin, int lane, Own& to) {
  using Shape = Layout<Code>;
  SYNCLINE_UNROLL
  for (int i = 0; i < Shape::kWords; ++i) {
    const std::int64_t first = begin + Shape::element(lane, i);
    float group[Shape::kPerWord];
    if (first + Shape::kPerWord <= elements) {
      load_vector<Reuse::kStream>(values + first, group);
    } else {
      SYNCLINE_UNROLL
      for (int j = 0; j < Shape::kPerWord; ++j) {
        group[j] = first + j < elements ? values[first + j] : 0.0f;
      }
    }
    SYNCLINE_UNROLL
    for (int j = 0; j < Shape::kPerWord; ++j) to.at[i * Shape::kPerWord + j] = group[j];
  }
}

// Returns the largest magnitude; infinity if a number is not finite.
SYNCLINE_HOST_DEVICE inline float largest_of(const Own& own) {
  float most = 0;
  SYNCLINE_UNROLL
  for (int i = 0; i < kOwn; ++i) {
    const float size = float_of(bits_of(own.at[i]) & 0x7fffffffu);
    if (!is_finite(own.at[i]) || size > most)
      most = is_finite(own.at[i]) ? size : float_of(0x7f800000u);
  }
  return most;
}

template <typename Code>
SYNCLINE_HOST_DEVICE inline void write_codes(const Own& own, float scale, int lane,
                                             std::uint32_t* unit) {
  using Shape = Layout<Code>;
  if (lane == 0) unit[0] = bits_of(scale);
  SYNCLINE_UNROLL
  for (int i = 0; i < Shape::kWords; ++i) {
    std::uint32_t word = 0;
    SYNCLINE_UNROLL
    for (int j = 0; j < Shape::kPerWord; ++j) {
      if (scale > 0) {
        word |= Code::code(own.at[i * Shape::kPerWord + j] / scale) << (j * Code::kBits);
      }
    }
    unit[Shape::word(lane, i)] = word;
  }
}

// Encodes `values`; if that is null, the sum of the blocks in `units` and in `others`.
template <typename Code>
__global__ void __launch_bounds__(kBlockThreads)
    blocks_encode_kernel(const float* values, std::int64_t elements, BlockParts others,
                         std::uint32_t* units, std::int64_t count) {
  __shared__ float largest[kBlockThreads];
  KernelBlock block;
  KernelBlock::Each<Own> held;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kUnits;
  for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kUnits; first < count;
       first += stride) {
    block.each([&](int thread) {
      const std::int64_t unit = first + thread / kLanes;
      const int lane = thread % kLanes;
      Own& own = held[thread];
      if (unit >= count) return;
      if (values != nullptr) {
        read_values<Code>(values, elements, unit * kBlockElements, lane, own);
      } else {
        const std::int64_t at = unit * Layout<Code>::kUnitWords;
        add_decoded<Code>(units + at, lane, true, own);
        for (int other = 0; other < others.count; ++other) {
          const auto* part =
              static_cast<const std::uint32_t*>(others.first) + other * (others.stride / 4) + at;
          add_decoded<Code>(part, lane, false, own);
        }
      }
      largest[thread] = largest_of(own);
    });
    block.each([&](int thread) {
      const std::int64_t unit = first + thread / kLanes;
      const int lane = thread % kLanes;
      if (unit >= count) return;
      float most = 0;
      for (int other = 0; other < kLanes; ++other) {
        const float size = largest[thread - lane + other];
        if (size > most) most = size;
      }
      const float scale = is_finite(most) ? most / Code::largest() : float_of(kNotANumber);
      write_codes<Code>(held[thread], scale, lane, units + unit * Layout<Code>::kUnitWords);
    });
  }
}

template <typename Code>
__global__ void __launch_bounds__(kBlockThreads)
    blocks_decode_kernel(const std::uint32_t* units, float* values, std::int64_t elements) {
  using Shape = Layout<Code>;
  KernelBlock block;
  const std::int64_t count = (elements + kBlockElements - 1) / kBlockElements;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kUnits;
  block.each([&](int thread) {
    const int lane = thread % kLanes;
    std::int64_t unit = static_cast<std::int64_t>(blockIdx.x) * kUnits + thread / kLanes;
    for (; unit < count; unit += stride) {
      Own own;
      add_decoded<Code>(units + unit * Shape::kUnitWords, lane, true, own);
      SYNCLINE_UNROLL
      for (int i = 0; i < Shape::kWords; ++i) {
        const std::int64_t first = unit * kBlockElements + Shape::element(lane, i);
        float group[Shape::kPerWord];
        SYNCLINE_UNROLL
        for (int j = 0; j < Shape::kPerWord; ++j) group[j] = own.at[i * Shape::kPerWord + j];
        if (first + Shape::kPerWord <= elements) {
          store_vector<Reuse::kKeep>(values + first, group);
          continue;
        }
        SYNCLINE_UNROLL
        for (int j = 0; j < Shape::kPerWord; ++j) {
          if (first + j < elements) values[first + j] = group[j];
        }
      }
    }
  });
}

// ---- Launches -----------------------------------------------------------------------------------

template <typename F>
Status with_code(BlockFormat format, F&& f) {
  switch (format) {
    case BlockFormat::kInt8:
      return f(WholeCode<127, 8>{});
    case BlockFormat::kInt4:
      return f(WholeCode<7, 4>{});
    case BlockFormat::kFp8:
      return f(SmallFloat<3, 7, 0x7e>{});
    case BlockFormat::kFp8E5M2:
      return f(SmallFloat<2, 15, 0x7b>{});
  }
  return failure("blocks: no such format");
}

Status aligned(const void* address, std::uintptr_t to, const char* name) {
  if (reinterpret_cast<std::uintptr_t>(address) % to == 0) return {};
  return failure(std::string(name) + " is not at a multiple of " + std::to_string(to) + " bytes");
}

std::int64_t parts_of(std::int64_t blocks) { return (blocks + kUnits - 1) / kUnits; }

Status encode(BlockFormat format, const float* values, std::int64_t elements,
              const BlockParts& others, void* to, std::int64_t blocks, cudaStream_t stream) {
  if (auto status = aligned(values, 16, "values"); !status.ok()) return status;
  if (auto status = aligned(to, 4, "blocks"); !status.ok()) return status;
  if (auto status = aligned(others.first, 4, "others"); !status.ok()) return status;
  if (blocks == 0) return {};
  return with_code(format, [&](auto code) {
    const auto kernel = blocks_encode_kernel<decltype(code)>;
    LaunchGrid grid;
    if (auto status = blocks_for(kernel, parts_of(blocks), &grid); !status.ok()) return status;
    return launch("blocks_encode_kernel", kernel, grid, stream, values, elements, others,
                  static_cast<std::uint32_t*>(to), blocks);
  });
}

}  // namespace

Status blocks_encode(BlockFormat format, const float* values, std::int64_t elements, void* blocks,
                     cudaStream_t stream) {
  return encode(format, values, elements, {}, blocks,
                (elements + kBlockElements - 1) / kBlockElements, stream);
}

Status blocks_sum(BlockFormat format, void* own, const BlockParts& others, std::int64_t blocks,
                  cudaStream_t stream) {
  return encode(format, nullptr, 0, others, own, blocks, stream);
}

Status blocks_decode(BlockFormat format, const void* blocks, float* values, std::int64_t elements,
                     cudaStream_t stream) {
  if (auto status = aligned(values, 16, "values"); !status.ok()) return status;
  if (auto status = aligned(blocks, 4, "blocks"); !status.ok()) return status;
  if (elements == 0) return {};
  return with_code(format, [&](auto code) {
    const auto kernel = blocks_decode_kernel<decltype(code)>;
    const std::int64_t units = (elements + kBlockElements - 1) / kBlockElements;
    LaunchGrid grid;
    if (auto status = blocks_for(kernel, parts_of(units), &grid); !status.ok()) return status;
    return launch("blocks_decode_kernel", kernel, grid, stream,
                  static_cast<const std::uint32_t*>(blocks), values, elements);
  });
}

}  // namespace syncline::kernels
