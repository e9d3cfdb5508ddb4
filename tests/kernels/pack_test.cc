// Pack, tile by tile on the CPU, against the host twin.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <random>

#include "kernels/block_sum.h"
#include "kernels/pack_tile.h"
#include "kernels/reference/gradient_copy.h"
#include "tests/kernels/guarded.h"

namespace syncline::kernels {
namespace {

template <typename T>
constexpr ElementType kTypeOf = ElementType::kFp32;
template <>
constexpr ElementType kTypeOf<Bf16> = ElementType::kBf16;
template <>
constexpr ElementType kTypeOf<Fp16> = ElementType::kFp16;

// What the kernel does, block by block and thread by thread.
template <typename From, typename To, bool kWrite = true>
GradientMeasure emulate(std::span<const PackedTensor> tensors, const PackOptions& options) {
  const PackPlan plan = plan_pack(tensors, options);
  std::vector<double> partials(static_cast<std::size_t>(plan.partials),
                               std::numeric_limits<double>::quiet_NaN());
  double values[kBlockThreads];
  for (const auto& launch : plan.launches) {
    for (std::int64_t chunk = 0; chunk < launch.chunks; ++chunk) {
      for (int thread = 0; thread < kBlockThreads; ++thread) {
        values[thread] = pack_chunk<From, To, kWrite>(launch.table, chunk, plan.tiles_per_chunk,
                                                      options.scale, true, thread);
      }
      partials[static_cast<std::size_t>(launch.first_partial + chunk)] = tree_sum(values);
    }
  }
  for (int thread = 0; thread < kBlockThreads; ++thread) {
    values[thread] = partials_of(partials.data(), plan.partials, thread);
  }
  const double sum = tree_sum(values);
  GradientMeasure measure{};
  write_measure(measure, sum, std::sqrt(sum), options.max_norm);
  return measure;
}

// Tensors of these sizes, their gradients, and a bucket in which they lie one after the other.
template <typename From, typename To>
struct PackSetting {
  std::vector<std::unique_ptr<Guarded<From>>> sources;
  std::vector<std::vector<float>> gradients;  // as From holds them
  std::unique_ptr<Guarded<To>> bucket;
  std::vector<PackedTensor> tensors;
  PackOptions options;

  PackSetting(const std::vector<std::size_t>& sizes, int from_offset, int to_offset, unsigned seed,
              double spread = 1) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal(0, spread);
    std::size_t total = 0;
    for (const std::size_t size : sizes) {
      std::vector<float> values(size);
      for (auto& value : values) value = static_cast<float>(normal(random));
      sources.push_back(std::make_unique<Guarded<From>>(size, from_offset, values));
      gradients.push_back(sources.back()->values());
      total += size;
    }
    bucket = std::make_unique<Guarded<To>>(total, to_offset);
    std::size_t at = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      tensors.push_back(
          {sources[i]->data(), bucket->data() + at, static_cast<std::int64_t>(sizes[i])});
      at += sizes[i];
    }
    options.from = kTypeOf<From>;
    options.to = kTypeOf<To>;
    options.scale = 0.375f;
    options.max_norm = 1;
    static GradientMeasure nowhere;
    static double partial;
    options.measure = &nowhere;  // the emulation has its own
    options.partials = &partial;
  }

  void check() {
    ASSERT_EQ(check_pack(tensors, options).text, "");
    const auto measure = emulate<From, To>(tensors, options);
    const auto twin = copy_gradients(gradients, options.scale, options.to);
    ASSERT_EQ(bucket->size(), twin.values.size());
    for (std::size_t i = 0; i < twin.values.size(); ++i) {
      const float got = (*bucket)[i];
      if (std::isnan(twin.values[i])) {
        ASSERT_TRUE(std::isnan(got)) << i;
      } else {
        ASSERT_EQ(bits_of(got), bits_of(twin.values[i])) << i;
      }
    }
    EXPECT_TRUE(bucket->intact());
    for (const auto& source : sources) EXPECT_TRUE(source->intact());
    EXPECT_EQ(measure.non_finite, twin.finite ? 0 : 1);
    if (!twin.finite) return;
    const double sum = twin.sum_of_squares;
    EXPECT_NEAR(measure.sum_of_squares, sum, 1e-12 * sum);
    EXPECT_NEAR(measure.norm, std::sqrt(sum), 1e-6 * std::sqrt(sum));
    const double clip = clip_coefficient(std::sqrt(sum), options.max_norm);
    EXPECT_NEAR(measure.clip_coefficient, clip, 1e-6 * clip);
  }
};

template <typename From, typename To>
void check_sizes_and_offsets() {
  for (const std::size_t size : {0u, 1u, 3u, 4u, 7u, 1021u, 4095u, 4096u, 4097u, 12289u}) {
    for (const int from_offset : {0, 1, 2, 3}) {
      for (const int to_offset : {0, 1, 2, 3}) {
        SCOPED_TRACE(std::to_string(size) + " elements, offsets " + std::to_string(from_offset) +
                     " and " + std::to_string(to_offset));
        PackSetting<From, To>({size}, from_offset, to_offset, 7).check();
      }
    }
  }
}

TEST(Pack, EverySizeOffsetAndType) {
  check_sizes_and_offsets<float, float>();
  check_sizes_and_offsets<float, Bf16>();
  check_sizes_and_offsets<float, Fp16>();
  check_sizes_and_offsets<Bf16, float>();
  check_sizes_and_offsets<Bf16, Bf16>();
  check_sizes_and_offsets<Bf16, Fp16>();
  check_sizes_and_offsets<Fp16, float>();
  check_sizes_and_offsets<Fp16, Bf16>();
  check_sizes_and_offsets<Fp16, Fp16>();
}

// 700 tensors fit one table; 2300 need three, whose partial sums join.
TEST(Pack, ManyTensorsAreOneLaunchOrAFew) {
  for (const auto& [count, launches] : {std::pair{700, 1}, {1000, 1}, {1001, 2}, {2300, 3}}) {
    std::vector<std::size_t> sizes;
    for (int i = 0; i < count; ++i) sizes.push_back(static_cast<std::size_t>(i * 37 % 411));
    sizes[3] = 9000;
    PackSetting<float, Bf16> setting(sizes, 1, 3, 11);
    // Tensors without elements take no row.
    const auto filled = static_cast<int>(sizes.size()) -
                        static_cast<int>(std::count(sizes.begin(), sizes.end(), 0u));
    const auto plan = plan_pack(setting.tensors, setting.options);
    EXPECT_EQ(plan.launches.size(), static_cast<std::size_t>((filled + 999) / 1000));
    EXPECT_LE(static_cast<int>(plan.launches.size()), launches);
    setting.check();
  }
}

// 40 M elements would be 9766 tiles: two go to a chunk, and chunks straddle tensors.
TEST(Pack, LargeListsHaveFewPartialSums) {
  std::vector<float> storage(4);
  std::vector<PackedTensor> tensors(5, {storage.data(), storage.data(), 8'000'001});
  PackOptions options;
  const auto plan = plan_pack(tensors, options);
  EXPECT_EQ(plan.tiles_per_chunk, 2);
  EXPECT_EQ(plan.partials, (5 * 1954 + 1) / 2);
  // Beyond 2^31 elements in one tensor.
  tensors = {{storage.data(), storage.data(), (1ll << 31) + 123}};
  const auto large = plan_pack(tensors, options);
  EXPECT_EQ(large.launches[0].table.end_tile, (1 << 19) + 1);
  EXPECT_LE(large.partials, 8192);
}

TEST(Pack, ChunksThatStraddleTensorsWriteTheSame) {
  PackSetting<float, float> setting({5000, 1, 4096, 9001}, 0, 1, 5);
  const auto plan = plan_pack(setting.tensors, setting.options);
  const PackTable& table = plan.launches[0].table;
  std::vector<double> sums;
  for (const std::int64_t per_chunk : {1, 2, 3, 7, 100}) {
    double sum = 0;
    for (std::int64_t chunk = 0; chunk * per_chunk < table.end_tile; ++chunk) {
      for (int thread = 0; thread < kBlockThreads; ++thread) {
        sum += pack_chunk<float, float, true>(table, chunk, per_chunk, 0.375f, true, thread);
      }
    }
    const auto twin = copy_gradients(setting.gradients, 0.375f, ElementType::kFp32);
    EXPECT_EQ(setting.bucket->values(), twin.values);
    EXPECT_NEAR(sum, twin.sum_of_squares, 1e-12 * sum);
  }
}

TEST(Pack, UnpackBringsThemBack) {
  PackSetting<float, float> there({4097, 0, 13, 8192, 1}, 2, 1, 3);
  there.options.scale = 1;
  emulate<float, float>(there.tensors, there.options);
  std::vector<std::unique_ptr<Guarded<float>>> targets;
  std::vector<PackedTensor> back;
  for (const auto& tensor : there.tensors) {
    targets.push_back(std::make_unique<Guarded<float>>(static_cast<std::size_t>(tensor.elements)));
    back.push_back({tensor.to, targets.back()->data(), tensor.elements});
  }
  emulate<float, float>(back, there.options);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    EXPECT_EQ(targets[i]->values(), there.gradients[i]);
    EXPECT_TRUE(targets[i]->intact());
  }
}

// The written values do not depend on how a list is split, the norm only by rounding.
TEST(Pack, SplittingATensorChangesNothing) {
  PackSetting<float, Fp16> whole({20000}, 0, 0, 9);
  const auto one = emulate<float, Fp16>(whole.tensors, whole.options);
  const auto expected = whole.bucket->values();
  std::vector<PackedTensor> parts;
  const auto* from = static_cast<const float*>(whole.tensors[0].from);
  std::int64_t at = 0;
  for (const std::int64_t size : {1, 4096, 5000, 3, 10900}) {
    parts.push_back({from + at, whole.bucket->data() + at, size});
    at += size;
  }
  ASSERT_EQ(at, 20000);
  std::fill_n(whole.bucket->data(), 20000, Fp16{0});
  const auto many = emulate<float, Fp16>(parts, whole.options);
  EXPECT_EQ(whole.bucket->values(), expected);
  EXPECT_NEAR(many.sum_of_squares, one.sum_of_squares, 1e-13 * one.sum_of_squares);
}

TEST(Pack, MeasuringAloneWritesNothing) {
  PackSetting<Bf16, float> setting({4097, 5}, 1, 0, 2);
  for (auto& tensor : setting.tensors) tensor.to = nullptr;
  ASSERT_EQ(check_pack(setting.tensors, setting.options).text, "");
  const auto measure = emulate<Bf16, Bf16, false>(setting.tensors, setting.options);
  const auto twin = copy_gradients(setting.gradients, setting.options.scale, ElementType::kFp32);
  EXPECT_NEAR(measure.sum_of_squares, twin.sum_of_squares, 1e-12 * twin.sum_of_squares);
  EXPECT_TRUE(setting.bucket->intact());
}

// One bad element anywhere shows, also where only the cast makes it infinite; large finite values
// and subnormals do not count as bad, and their squares neither overflow nor vanish.
TEST(Pack, NonFiniteValuesAreSeen) {
  for (const float bad :
       {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::quiet_NaN(), 1e6f, 3e38f, 1e-40f}) {
    for (const std::size_t at : {0u, 1u, 4095u, 4096u, 8190u}) {
      PackSetting<float, float> wide({8191}, 1, 1, 4);
      wide.sources[0]->data()[at] = bad;
      wide.gradients[0][at] = bad;
      wide.check();
      PackSetting<float, Fp16> narrow({8191}, 3, 0, 4);
      narrow.sources[0]->data()[at] = bad;
      narrow.gradients[0][at] = bad;
      narrow.check();
    }
  }
}

TEST(Pack, ScalingAndNegatingAreExact) {
  PackSetting<float, float> setting({5003}, 0, 0, 6);
  setting.options.scale = 1;
  const auto plain = emulate<float, float>(setting.tensors, setting.options);
  setting.options.scale = -0x1p40f;
  const auto scaled = emulate<float, float>(setting.tensors, setting.options);
  EXPECT_EQ(scaled.sum_of_squares, plain.sum_of_squares * 0x1p80);
  EXPECT_EQ(scaled.norm, plain.norm * 0x1p40f);
}

TEST(Pack, TheEmptyListHasNormZero) {
  PackOptions options;
  double partial = 0;
  GradientMeasure target{};
  options.measure = &target;
  options.partials = &partial;
  options.max_norm = 1;
  EXPECT_EQ(plan_pack({}, options).launches.size(), 1u);  // it still writes the measure
  const auto measure = emulate<float, float>({}, options);
  EXPECT_EQ(measure.norm, 0);
  EXPECT_EQ(measure.clip_coefficient, 1);
  EXPECT_EQ(measure.non_finite, 0);
  options.measure = nullptr;
  EXPECT_TRUE(plan_pack({}, options).launches.empty());
}

TEST(Pack, BadArgumentsAreNamed) {
  float memory[8] = {};
  GradientMeasure measure{};
  double partial = 0;
  const auto text = [&](PackedTensor tensor, PackOptions options) {
    return check_pack(std::span(&tensor, 1), options).text;
  };
  PackOptions good;
  EXPECT_EQ(text({memory, memory, 8}, good), "");
  EXPECT_EQ(text({nullptr, nullptr, 0}, PackOptions{.measure = &measure, .partials = &partial}),
            "");
  EXPECT_NE(text({memory, memory, -1}, good).find("-1 elements"), std::string::npos);
  EXPECT_NE(text({nullptr, memory, 1}, good).find("read from a null"), std::string::npos);
  EXPECT_NE(text({memory, nullptr, 1}, good).find("nothing is written"), std::string::npos);
  const auto* odd = reinterpret_cast<const char*>(memory) + 2;
  EXPECT_NE(text({odd, memory, 1}, good).find("not aligned to its element size"),
            std::string::npos);
  EXPECT_NE(text({memory, memory, 1}, PackOptions{.to = ElementType::kBf16}).find("in place"),
            std::string::npos);
  EXPECT_NE(text({memory, memory, 1}, PackOptions{.scale = NAN}).find("scale"), std::string::npos);
  EXPECT_NE(text({memory, memory, 1}, PackOptions{.measure = &measure}).find("partial sums"),
            std::string::npos);
  EXPECT_NE(text({memory, memory, 1}, PackOptions{.max_norm = -1}).find("largest norm"),
            std::string::npos);
  EXPECT_NE(
      text({memory, memory, 1}, PackOptions{.from = static_cast<ElementType>(9)}).find("type"),
      std::string::npos);
  const PackedTensor mixed[] = {{memory, memory, 1}, {memory, nullptr, 1}};
  EXPECT_NE(check_pack(mixed, good).text.find("tensor 1 is written to a null"), std::string::npos);
}

}  // namespace
}  // namespace syncline::kernels
