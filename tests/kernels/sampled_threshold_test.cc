// The kernels of the sampled threshold, block by block on the CPU, against the host's: to the bit.

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "core/compress/momentum_correction.h"
#include "kernels/reference/sampled_threshold.h"
#include "kernels/sampled_spans.h"
#include "tests/kernels/serial_dgc.h"

namespace syncline::testing {
namespace {

using Values = std::vector<float>;

std::vector<std::uint32_t> pattern(const Values& values) {
  std::vector<std::uint32_t> result;
  for (const float value : values) result.push_back(kernels::bits_of(value));
  return result;
}

struct Sampled {
  Values gradient, velocity, residual;
  std::int64_t kept;
};

// One step of all tensors by the kernels, and of each by the host: the same.
void expect_same(std::vector<Sampled> tensors, std::uint32_t seed, bool skipped = false) {
  std::vector<Sampled> device = tensors;
  std::vector<kernels::DgcTensor> list;
  for (auto& t : device) {
    list.push_back({t.gradient.data(), t.velocity.data(), t.residual.data(), nullptr,
                    static_cast<std::int64_t>(t.gradient.size()), t.kept});
  }
  kernels::DgcPlan plan;
  ASSERT_TRUE(kernels::dgc_plan(list, kernels::ElementType::kFp32, &plan).ok());
  kernels::SampledPlan sampled;
  ASSERT_EQ(kernels::sampled_plan(plan, &sampled).text, "");
  SerialDgc steps(plan, seed);
  std::vector<unsigned char> memory(sampled.workspace_bytes + 256, 0xab);
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  const kernels::SampledTables room =
      kernels::sampled_tables(sampled, memory.data() + (256 - address % 256) % 256);

  std::vector<std::uint32_t> indices(static_cast<std::size_t>(plan.packed), 0x77777777u);
  Values values(indices.size(), std::numeric_limits<float>::quiet_NaN());
  std::vector<kernels::DgcReport> reports(tensors.size());
  const std::int32_t skip = skipped ? 1 : 0;
  kernels::DgcStep step;
  step.skip = &skip;
  step.indices = indices.data();
  step.values = values.data();
  step.reports = reports.data();

  std::mt19937 random(seed);
  const auto launch = [&](std::uint32_t blocks, auto&& f) {
    std::vector<std::uint32_t> order(blocks * tensors.size());
    std::iota(order.begin(), order.end(), 0u);
    std::shuffle(order.begin(), order.end(), random);
    for (const std::uint32_t at : order) {
      kernels::SerialBlock block(random() % 2 == 0);
      f(block, at / blocks, at % blocks);
    }
  };
  const auto shared = std::make_unique<kernels::DgcShared>();
  steps.update(step, false);
  launch(kernels::kSampleWindows, [&](auto& block, std::uint32_t tensor, std::uint32_t number) {
    kernels::sample_window(block, *shared, steps.tables(), room, step, tensor, number);
  });
  launch(kernels::kSampleBlocks, [&](auto& block, std::uint32_t tensor, std::uint32_t number) {
    kernels::sampled_count_block(block, steps.tables(), room, step, tensor, number);
  });
  launch(kernels::kSampleBlocks, [&](auto& block, std::uint32_t tensor, std::uint32_t number) {
    kernels::sampled_send_block(block, steps.tables(), room, step, tensor, number);
  });

  for (std::size_t i = 0; i < tensors.size(); ++i) {
    SCOPED_TRACE("tensor " + std::to_string(i));
    Sampled& host = tensors[i];
    const auto places = static_cast<std::size_t>(host.kept);
    kernels::SparseMessage message{std::vector<std::uint32_t>(places, kernels::kPadIndex),
                                   Values(places, -1.0f)};
    if (!skipped) {
      compress::accumulate(host.gradient, {}, {}, host.velocity, host.residual);
      const float threshold = kernels::sampled_threshold(host.residual, host.kept);
      EXPECT_EQ(reports[i].threshold, kernels::bits_of(threshold));
      message = kernels::take_above(threshold, host.kept, host.velocity, host.residual);
    }
    const auto at = static_cast<std::ptrdiff_t>(plan.rows[i].packed_at);
    const auto end = at + static_cast<std::ptrdiff_t>(host.kept);
    EXPECT_EQ(std::vector(indices.begin() + at, indices.begin() + end), message.indices);
    EXPECT_EQ(pattern({values.begin() + at, values.begin() + end}), pattern(message.values));
    EXPECT_EQ(pattern(device[i].residual), pattern(host.residual));
    EXPECT_EQ(pattern(device[i].velocity), pattern(host.velocity));
    const auto pads =
        std::count(message.indices.begin(), message.indices.end(), kernels::kPadIndex);
    EXPECT_EQ(reports[i].selected, places - static_cast<std::size_t>(pads));
    EXPECT_EQ(reports[i].path, skipped ? kernels::DgcPath::kSkipped : kernels::DgcPath::kSampled);
  }
}

Sampled random_sampled(std::size_t n, std::int64_t kept, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Sampled made{Values(n), Values(n), Values(n), kept};
  for (auto* values : {&made.gradient, &made.velocity, &made.residual}) {
    for (auto& value : *values) value = normal(random);
  }
  return made;
}

TEST(SampledKernels, AgreeWithTheHost) {
  std::vector<Sampled> tensors;
  for (const std::int64_t kept : {2, 3, 16, 65, 262, 5000, 16384}) {
    tensors.push_back(random_sampled(16384, kept, static_cast<std::uint32_t>(kept)));
    tensors.push_back(random_sampled(65537, kept, static_cast<std::uint32_t>(kept)));
  }
  tensors.push_back(random_sampled(150001, 150, 3));
  expect_same(tensors, 1);
  expect_same(tensors, 2);
}

TEST(SampledKernels, ASkippedStepChangesNothing) {
  expect_same({random_sampled(20000, 20, 1)}, 1, true);
}

TEST(SampledKernels, TiesScalesAndWhatIsNotFinite) {
  const std::size_t n = 40000;
  const Values zero(n);
  std::vector<Sampled> tensors;
  tensors.push_back({zero, zero, Values(n, 0.5f), 40});  // sends nothing
  tensors.push_back({zero, zero, zero, 40});
  Values levels(n), layered(n), broken(n);
  std::mt19937 random(5);
  for (std::size_t i = 0; i < n; ++i) {
    levels[i] = static_cast<float>(random() % 7) - 3;
    layered[i] = static_cast<float>(random() % 1000) * (i > n / 2 ? 1000.0f : 1.0f);
    broken[i] = random() % 3 == 0 ? std::numeric_limits<float>::quiet_NaN() : levels[i];
  }
  tensors.push_back({zero, zero, levels, 40});
  tensors.push_back({zero, zero, layered, 40});
  tensors.push_back({zero, zero, broken, 40});
  tensors.push_back({zero, zero, Values(n, std::numeric_limits<float>::infinity()), 40});
  expect_same(tensors, 3);
}

TEST(SampledArguments, WhatIsWrongIsNamed) {
  static float base[4];
  const auto text = [](std::int64_t elements, std::int64_t kept) {
    kernels::DgcPlan plan;
    EXPECT_TRUE(kernels::dgc_plan({{base, base, base, nullptr, elements, kept}},
                                  kernels::ElementType::kFp32, &plan)
                    .ok());
    kernels::SampledPlan sampled;
    return kernels::sampled_plan(plan, &sampled).text;
  };
  EXPECT_EQ(text(16384, 16), "");
  EXPECT_EQ(text(16383, 16), "sampled_plan: tensor 0: has 16383 elements, sampling needs 16384");
  EXPECT_EQ(text(16384, 1), "sampled_plan: tensor 0: kept is 1, sampling needs 2");
}

}  // namespace
}  // namespace syncline::testing
