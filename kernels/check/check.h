// Shared by the checks of the kernels: arrays in device memory between canaries, random values, and
// one line per case. They run on a GPU (make gpu-check), and block by block on the CPU with the
// host's memory (tests/kernels/emulated/kernel_checks.cc).
#pragma once

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "kernels/check/measure.h"
#include "kernels/host_device.h"

namespace syncline::kernels {

// Ends the program if a call failed: later results would be meaningless.
inline void require(const Status& status) {
  if (status.ok()) return;
  std::printf("FAILED  %s\n", status.text.c_str());
  std::exit(1);
}

// The only functions with CUDA (device.cu): memory, time, and times of copies and launches.
void wait_for_gpu();
void* allocate(std::size_t bytes);
void release(void* memory);
void copy(void* to, const void* from, std::size_t bytes);
double seconds_of(const std::function<void()>& work);
void measure_memory(bool large, Measurements& to);
void measure_launches(Measurements& to);

TimeRange range_of(std::vector<double> times);

// Elements of a tensor that gives every multiprocessor of a large GPU a block. Matrix cases are no
// larger, as the host computes each of them too.
constexpr std::size_t kBusy = 300'007;

// Stores `size` elements, `offset` elements after a multiple of 256 bytes. All bytes are 0xff at
// first (NaN in every type); those before and after the elements must stay so.
template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t size, int offset = 0)
      : size_(size),
        bytes_(2 * kGuard + (size + static_cast<std::size_t>(offset)) * sizeof(T)),
        memory_(allocate(bytes_)) {
    begin_ = kGuard + static_cast<std::size_t>(offset) * sizeof(T);
  }
  DeviceArray(const std::vector<T>& values, int offset = 0) : DeviceArray(values.size(), offset) {
    put(values);
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { release(memory_); }

  T* data() { return reinterpret_cast<T*>(static_cast<unsigned char*>(memory_) + begin_); }

  void put(const std::vector<T>& values) { copy(data(), values.data(), size_ * sizeof(T)); }

  std::vector<T> get() {
    std::vector<T> values(size_);
    copy(values.data(), data(), size_ * sizeof(T));
    return values;
  }

  bool intact() {
    std::vector<unsigned char> all(bytes_);
    copy(all.data(), memory_, bytes_);
    for (std::size_t i = 0; i < bytes_; ++i) {
      const bool inside = i >= begin_ && i < begin_ + size_ * sizeof(T);
      if (!inside && all[i] != 0xff) return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t kGuard = 256;
  std::size_t size_;
  std::size_t bytes_;
  std::size_t begin_;
  void* memory_;
};

template <typename T>
std::vector<T> random_elements(std::size_t size, unsigned seed, float centre = 0) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(centre, 1);
  std::vector<T> values(size);
  for (auto& value : values) value = from_float<T>(normal(random));
  return values;
}

template <typename T>
std::vector<float> floats_of(const std::vector<T>& values) {
  std::vector<float> wide(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) wide[i] = to_float(values[i]);
  return wide;
}

template <typename T>
std::vector<double> doubles_of(const std::vector<T>& values) {
  const auto wide = floats_of(values);
  return {wide.begin(), wide.end()};
}

// Returns the number of elements with different bits; two NaNs are equal.
template <typename T>
std::size_t different(const std::vector<T>& got, const std::vector<T>& expected) {
  if (got.size() != expected.size()) return got.size() + expected.size();
  std::size_t count = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const float a = to_float(got[i]);
    const float b = to_float(expected[i]);
    if (bits_of(a) != bits_of(b) && !(is_nan(a) && is_nan(b))) ++count;
  }
  return count;
}

// Returns half a step of T at `value`, plus half of fp16's smallest step.
template <typename T>
double half_step(double value) {
  const bool brain = to_float(T{0x3f80}) == 1.0f;
  return std::fabs(value) * (brain ? 0x1p-8 : 0x1p-11) + 0x1p-25;
}
template <>
inline double half_step<float>(double value) {
  return std::fabs(value) * 0x1p-24;
}

// The largest error as a multiple of the allowed error; up to 1 passes, a NaN does not.
struct Worst {
  double ratio = 0;
  bool nan = false;

  void take(double got, double expected, double allowed) {
    const double now = std::fabs(got - expected) / allowed;
    if (!(now >= 0)) nan = true;
    if (now > ratio) ratio = now;
  }
  bool passes() const { return !nan && ratio <= 1; }
  std::string text() const {
    return (nan ? std::string("NaN") : std::to_string(ratio)) + " of the error allowed";
  }
};

template <typename T>
constexpr ElementType kElementType = ElementType::kFp32;
template <>
constexpr ElementType kElementType<Bf16> = ElementType::kBf16;
template <>
constexpr ElementType kElementType<Fp16> = ElementType::kFp16;

inline const char* name_of(ElementType type) {
  return type == ElementType::kBf16 ? "bf16" : type == ElementType::kFp16 ? "fp16" : "fp32";
}

}  // namespace syncline::kernels
