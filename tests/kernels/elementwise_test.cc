// Addition and activation, tile by tile on the CPU, against the host twin.

#include "kernels/elementwise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "kernels/elementwise_tile.h"
#include "kernels/reference/activation.h"
#include "tests/kernels/guarded.h"

namespace syncline::kernels {
namespace {

template <Activation kActivation>
constexpr Nonlinearity kTwinOf = kActivation == Activation::kRelu   ? Nonlinearity::kRelu
                                 : kActivation == Activation::kGelu ? Nonlinearity::kGelu
                                                                    : Nonlinearity::kNone;

template <typename T, Activation kActivation, bool kBackward>
void emulate(const T* a, const T* b, const T* dy, T* out, std::size_t size) {
  const auto elements = static_cast<std::int64_t>(size);
  const std::int64_t tiles = tiles_of(elements, misalignment<kActivationGroup<T>>(out));
  for (std::int64_t tile = 0; tile < tiles; ++tile) {
    for (int thread = 0; thread < kBlockThreads; ++thread) {
      add_activation_tile<T, kActivation, kBackward>(a, b, dy, out, elements, tile, thread);
    }
  }
}

// Half a step of T at `value`.
template <typename T>
double rounding(double value) {
  const double step = std::is_same_v<T, float>  ? 0x1p-24
                      : std::is_same_v<T, Bf16> ? 0x1p-8
                                                : 0x1p-11;
  const double least = std::is_same_v<T, Fp16> ? 0x1p-25 : 0;
  return std::fabs(value) * step * 1.001 + least;
}

std::vector<float> spread_values(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 2);
  std::vector<float> values(size);
  for (auto& value : values) value = normal(random);
  return values;
}

template <typename T, Activation kActivation>
void check(std::size_t size, int a_offset, int b_offset, int out_offset) {
  SCOPED_TRACE(std::to_string(size) + " elements, offsets " + std::to_string(a_offset) +
               std::to_string(b_offset) + std::to_string(out_offset));
  Guarded<T> a(size, a_offset, spread_values(size, 1));
  Guarded<T> b(size, b_offset, spread_values(size, 2));
  Guarded<T> dy(size, b_offset, spread_values(size, 3));
  for (const bool added : {true, false}) {
    Guarded<T> y(size, out_offset);
    Guarded<T> dz(size, out_offset);
    const T* second = added ? b.data() : nullptr;
    emulate<T, kActivation, false>(a.data(), second, nullptr, y.data(), size);
    emulate<T, kActivation, true>(a.data(), second, dy.data(), dz.data(), size);
    for (std::size_t i = 0; i < size; ++i) {
      const double z = a[i] + (added ? b[i] : 0.0f);  // rounded to fp32, as the kernel's
      const double expected = activated(kTwinOf<kActivation>, z);
      const double slope = activation_slope(kTwinOf<kActivation>, z);
      const double loose = kActivation == Activation::kGelu ? 4e-7 * (1 + std::fabs(z)) : 0;
      ASSERT_LE(std::fabs(y[i] - expected), rounding<T>(expected) + loose) << i << " z " << z;
      ASSERT_LE(std::fabs(dz[i] - dy[i] * slope),
                rounding<T>(dy[i] * slope) + 2 * loose * std::fabs(dy[i]))
          << i << " z " << z;
    }
    EXPECT_TRUE(y.intact() && dz.intact() && a.intact() && b.intact() && dy.intact());
  }
}

template <typename T>
void check_type() {
  for (const std::size_t size : {0u, 1u, 3u, 8u, 1021u, 4095u, 4096u, 4097u, 8200u}) {
    check<T, Activation::kRelu>(size, 0, 0, 0);
    check<T, Activation::kRelu>(size, 3, 3, 3);
    check<T, Activation::kRelu>(size, 1, 2, 3);
    check<T, Activation::kGelu>(size, 0, 0, 0);
    check<T, Activation::kIdentity>(size, 0, 1, 0);
  }
}

TEST(AddActivation, EverySizeOffsetAndType) {
  check_type<float>();
  check_type<Bf16>();
  check_type<Fp16>();
}

TEST(AddActivation, InPlaceIsTheSame) {
  Guarded<Bf16> a(5000, 1, spread_values(5000, 1));
  Guarded<Bf16> b(5000, 1, spread_values(5000, 2));
  Guarded<Bf16> y(5000, 1);
  emulate<Bf16, Activation::kRelu, false>(a.data(), b.data(), nullptr, y.data(), 5000);
  emulate<Bf16, Activation::kRelu, false>(a.data(), b.data(), nullptr, a.data(), 5000);
  EXPECT_EQ(a.values(), y.values());
}

TEST(AddActivation, ReluGoesBackFromItsOutputToo) {
  Guarded<float> a(5000, 0, spread_values(5000, 1));
  Guarded<float> b(5000, 0, spread_values(5000, 2));
  Guarded<float> dy(5000, 0, spread_values(5000, 3));
  Guarded<float> y(5000, 0);
  Guarded<float> from_inputs(5000, 0);
  Guarded<float> from_output(5000, 0);
  emulate<float, Activation::kRelu, false>(a.data(), b.data(), nullptr, y.data(), 5000);
  emulate<float, Activation::kRelu, true>(a.data(), b.data(), dy.data(), from_inputs.data(), 5000);
  emulate<float, Activation::kRelu, true>(y.data(), nullptr, dy.data(), from_output.data(), 5000);
  EXPECT_EQ(from_inputs.values(), from_output.values());
}

TEST(AddActivation, GeluFromEndToEnd) {
  double worst = 0;
  for (double z = -60; z <= 60; z += 1.0 / 512) {
    const auto x = static_cast<float>(z);
    worst = std::max(worst,
                     std::fabs(activate<Activation::kGelu>(x) - activated(Nonlinearity::kGelu, x)) /
                         (1 + std::fabs(z)));
    worst = std::max(
        worst, std::fabs(slope<Activation::kGelu>(x) - activation_slope(Nonlinearity::kGelu, x)) /
                   (1 + std::fabs(z)));
  }
  // The formula's 1.5e-7, and the rounding of fp32.
  EXPECT_LE(worst, 3e-7);
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(activate<Activation::kGelu>(infinity), infinity);
  EXPECT_EQ(activate<Activation::kGelu>(-infinity), 0);
  EXPECT_EQ(slope<Activation::kGelu>(infinity), 1);
  EXPECT_EQ(slope<Activation::kGelu>(-infinity), 0);
}

TEST(AddActivation, ANanStays) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(is_nan(activate<Activation::kRelu>(nan)));
  EXPECT_TRUE(is_nan(activate<Activation::kGelu>(nan)));
  EXPECT_TRUE(is_nan(activate<Activation::kIdentity>(nan)));
  EXPECT_TRUE(is_nan(slope<Activation::kGelu>(nan)));
}

TEST(AddActivation, BadArgumentsAreNamed) {
  float memory[8] = {};
  const auto has = [](const Status& status, const char* part) {
    EXPECT_NE(status.text.find(part), std::string::npos) << status.text;
  };
  AddActivation good{ElementType::kFp32, Activation::kRelu, memory, memory, 8};
  EXPECT_TRUE(check_add_activation(good, memory).ok());
  EXPECT_TRUE(check_add_activation_gradient(good, memory, memory).ok());
  has(check_add_activation(good, nullptr), "output is a null");
  has(check_add_activation_gradient(good, nullptr, memory), "dy is a null");
  AddActivation bad = good;
  bad.a = nullptr;
  has(check_add_activation(bad, memory), "a is a null");
  bad = good;
  bad.b = reinterpret_cast<const char*>(memory) + 1;
  has(check_add_activation(bad, memory), "b is not aligned");
  bad = good;
  bad.elements = -1;
  has(check_add_activation(bad, memory), "-1 elements");
  bad = good;
  bad.activation = static_cast<Activation>(7);
  has(check_add_activation(bad, memory), "unknown activation");
}

}  // namespace
}  // namespace syncline::kernels
