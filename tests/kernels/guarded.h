// Arrays between guard bytes, at a chosen offset from an aligned address.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/host_device.h"

namespace syncline::kernels {

// `size` elements that begin `offset` elements behind a multiple of 64 bytes; everything, guards
// included, is 0xcb at first.
template <typename T>
class Guarded {
 public:
  explicit Guarded(std::size_t size, int offset = 0)
      : size_(size), bytes_(size * sizeof(T) + 3 * kGuard, kPoison) {
    const auto address = reinterpret_cast<std::uintptr_t>(bytes_.data());
    const std::size_t aligned = (kGuard - address % kGuard) % kGuard;
    begin_ = aligned + kGuard + static_cast<std::size_t>(offset) * sizeof(T);
  }

  Guarded(std::size_t size, int offset, const std::vector<float>& values) : Guarded(size, offset) {
    for (std::size_t i = 0; i < size; ++i) data()[i] = from_float<T>(values[i]);
  }

  T* data() { return reinterpret_cast<T*>(bytes_.data() + begin_); }
  std::size_t size() const { return size_; }

  float operator[](std::size_t i) { return to_float(data()[i]); }

  std::vector<float> values() {
    std::vector<float> out;
    for (std::size_t i = 0; i < size_; ++i) out.push_back((*this)[i]);
    return out;
  }

  // Nothing outside was written.
  bool intact() const {
    const auto end = begin_ + size_ * sizeof(T);
    const auto poisoned = [](unsigned char byte) { return byte == kPoison; };
    return std::all_of(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(begin_),
                       poisoned) &&
           std::all_of(bytes_.begin() + static_cast<std::ptrdiff_t>(end), bytes_.end(), poisoned);
  }

 private:
  static constexpr std::size_t kGuard = 64;
  static constexpr unsigned char kPoison = 0xcb;
  std::size_t size_;
  std::size_t begin_ = 0;
  std::vector<unsigned char> bytes_;
};

}  // namespace syncline::kernels
