// Groups of elements that one thread reads or writes at once: one access of 16 (or 8) bytes if the
// addresses allow it, otherwise element by element.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/host_device.h"

namespace syncline::kernels {

// A tile's groups are counted from an aligned address, perhaps before the first element. The first
// and last group of a tensor may then be incomplete and go element by element. So a tensor at any
// offset needs no separate head and tail. Arrays with equal misalignment (offset 1 of fp32 in each,
// say) run at full speed except at both ends. Arrays with another misalignment than the first are
// read element by element: correct, but slower.

constexpr int kBlockThreads = 256;
constexpr int kTileElements = 4096;  // tile of one block; tiles never straddle tensors

// kStream: used once and then not for long; it should not evict other data from the L2 cache.
enum class Reuse { kKeep, kStream };

template <int kBytes>
struct alignas(kBytes) Word {
  std::uint32_t words[kBytes / 4];
};

#if defined(__CUDA_ARCH__)
// Loads in PTX: the compiler would split a wide access into one for each element.
template <Reuse kReuse>
__device__ inline Word<16> load_word(const Word<16>* from) {
  Word<16> to;
  std::uint32_t(&w)[4] = to.words;
  if constexpr (kReuse == Reuse::kStream) {
    asm volatile("ld.global.cs.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                 : "l"(from)
                 : "memory");
  } else {
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                 : "l"(from)
                 : "memory");
  }
  return to;
}
template <Reuse kReuse>
__device__ inline Word<8> load_word(const Word<8>* from) {
  Word<8> to;
  std::uint32_t(&w)[2] = to.words;
  if constexpr (kReuse == Reuse::kStream) {
    asm volatile("ld.global.cs.v2.u32 {%0, %1}, [%2];"
                 : "=r"(w[0]), "=r"(w[1])
                 : "l"(from)
                 : "memory");
  } else {
    asm volatile("ld.global.v2.u32 {%0, %1}, [%2];"
                 : "=r"(w[0]), "=r"(w[1])
                 : "l"(from)
                 : "memory");
  }
  return to;
}
template <Reuse kReuse>
__device__ inline void store_word(Word<16>* to, const Word<16>& word) {
  const std::uint32_t(&w)[4] = word.words;
  if constexpr (kReuse == Reuse::kStream) {
    asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(w[0]), "r"(w[1]),
                 "r"(w[2]), "r"(w[3])
                 : "memory");
  } else {
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(w[0]), "r"(w[1]),
                 "r"(w[2]), "r"(w[3])
                 : "memory");
  }
}
template <Reuse kReuse>
__device__ inline void store_word(Word<8>* to, const Word<8>& word) {
  const std::uint32_t(&w)[2] = word.words;
  if constexpr (kReuse == Reuse::kStream) {
    asm volatile("st.global.cs.v2.u32 [%0], {%1, %2};" ::"l"(to), "r"(w[0]), "r"(w[1]) : "memory");
  } else {
    asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(to), "r"(w[0]), "r"(w[1]) : "memory");
  }
}
#else
template <Reuse kReuse, int kBytes>
Word<kBytes> load_word(const Word<kBytes>* from) {
  Word<kBytes> word;
  memcpy(&word, from, sizeof word);  // memcpy, since the array has elements of another type
  return word;
}
template <Reuse kReuse, int kBytes>
void store_word(Word<kBytes>* to, const Word<kBytes>& word) {
  memcpy(to, &word, sizeof word);
}
#endif

// Loads kCount elements. Requires an address at a multiple of their bytes (at most 16).
template <Reuse kReuse, int kCount, typename T>
SYNCLINE_HOST_DEVICE inline void load_vector(const T* from, float (&to)[kCount]) {
  constexpr int kBytes = kCount * static_cast<int>(sizeof(T));
  constexpr int kWord = kBytes > 16 ? 16 : kBytes;
  constexpr int kEach = kWord / static_cast<int>(sizeof(T));
  static_assert(kWord == 16 || kWord == 8);
  SYNCLINE_UNROLL
  for (int part = 0; part < kBytes / kWord; ++part) {
    const auto word = load_word<kReuse>(reinterpret_cast<const Word<kWord>*>(from) + part);
    T elements[kEach];
    memcpy(elements, &word, kWord);
    SYNCLINE_UNROLL
    for (int i = 0; i < kEach; ++i) to[part * kEach + i] = to_float(elements[i]);
  }
}

template <Reuse kReuse, int kCount, typename T>
SYNCLINE_HOST_DEVICE inline void store_vector(T* to, const float (&from)[kCount]) {
  constexpr int kBytes = kCount * static_cast<int>(sizeof(T));
  constexpr int kWord = kBytes > 16 ? 16 : kBytes;
  constexpr int kEach = kWord / static_cast<int>(sizeof(T));
  static_assert(kWord == 16 || kWord == 8);
  SYNCLINE_UNROLL
  for (int part = 0; part < kBytes / kWord; ++part) {
    T elements[kEach];
    SYNCLINE_UNROLL
    for (int i = 0; i < kEach; ++i) elements[i] = from_float<T>(from[part * kEach + i]);
    Word<kWord> word;
    memcpy(&word, elements, kWord);
    store_word<kReuse>(reinterpret_cast<Word<kWord>*>(to) + part, word);
  }
}

// Returns true if element `first` of `base` (perhaps before the array) is at a multiple of a
// group's bytes, at most 16: groups counted from it can be accessed at once.
template <int kCount, typename T>
SYNCLINE_HOST_DEVICE inline bool is_aligned(const T* base, std::int64_t first) {
  constexpr std::uint64_t kBytes = kCount * sizeof(T) > 16 ? 16 : kCount * sizeof(T);
  const auto address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(base)) +
                       static_cast<std::uint64_t>(first) * sizeof(T);  // may wrap around
  return address % kBytes == 0;
}

// Returns the elements by which `base` is beyond a multiple of a group's bytes: groups begin that
// much before the array. Call it for the array that matters most, usually the one with the widest
// elements.
template <int kCount, typename T>
SYNCLINE_HOST_DEVICE inline int misalignment(const T* base) {
  constexpr std::uint64_t kBytes = kCount * sizeof(T) > 16 ? 16 : kCount * sizeof(T);
  const auto address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(base));
  return static_cast<int>(address % kBytes / sizeof(T));
}

// Loads elements first .. first + kCount - 1 of an array of `size`; those outside read as 0.
template <Reuse kReuse, int kCount, typename T>
SYNCLINE_HOST_DEVICE inline void load_group(const T* base, std::int64_t first, std::int64_t size,
                                            bool aligned, float (&to)[kCount]) {
  if (aligned && first >= 0 && first + kCount <= size) {
    load_vector<kReuse>(base + first, to);
    return;
  }
  SYNCLINE_UNROLL
  for (int i = 0; i < kCount; ++i) {
    const std::int64_t index = first + i;
    to[i] = index >= 0 && index < size ? to_float(base[index]) : 0.0f;
  }
}

// Stores elements first .. first + kCount - 1; those outside are not written.
template <Reuse kReuse, int kCount, typename T>
SYNCLINE_HOST_DEVICE inline void store_group(T* base, std::int64_t first, std::int64_t size,
                                             bool aligned, const float (&from)[kCount]) {
  if (aligned && first >= 0 && first + kCount <= size) {
    store_vector<kReuse>(base + first, from);
    return;
  }
  SYNCLINE_UNROLL
  for (int i = 0; i < kCount; ++i) {
    const std::int64_t index = first + i;
    if (index >= 0 && index < size) base[index] = from_float<T>(from[i]);
  }
}

// Returns the tiles of an array of `size` elements if groups begin `shift` elements before it.
SYNCLINE_HOST_DEVICE inline std::int64_t tiles_of(std::int64_t size, int shift) {
  return size == 0 ? 0 : (size + shift + kTileElements - 1) / kTileElements;
}

}  // namespace syncline::kernels
