// What a DGC step is given: what is wrong with it is named, and large sizes are laid out right.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "tests/kernels/serial_dgc.h"

namespace syncline::testing {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(DgcArguments, WhatIsWrongIsNamed) {
  float u[4] = {}, v[4] = {}, g[4] = {};
  const kernels::DgcTensor good{g, u, v, nullptr, 4, 1};
  const auto text = [](const kernels::DgcTensor& tensor,
                       kernels::ElementType type = kernels::ElementType::kFp32) {
    kernels::DgcPlan plan;
    return kernels::dgc_plan({tensor}, type, &plan).text;
  };
  EXPECT_EQ(text(good), "");
  EXPECT_EQ(text(good, static_cast<kernels::ElementType>(7)),
            "dgc_plan: the gradient's type is 7, not 0, 1 or 2");
  kernels::DgcTensor bad = good;
  bad.gradient = nullptr;
  EXPECT_EQ(text(bad), "dgc_plan: tensor 0: gradient is null");
  bad = good;
  bad.velocity = nullptr;
  EXPECT_EQ(text(bad), "dgc_plan: tensor 0: velocity is null");
  bad = good;
  bad.residual = nullptr;
  EXPECT_EQ(text(bad), "dgc_plan: tensor 0: residual is null");
  bad = good;
  bad.elements = -1;
  EXPECT_EQ(text(bad), "dgc_plan: tensor 0: elements is -1, not 0 to 4294967295");
  bad.elements = 1ll << 32;
  EXPECT_EQ(text(bad), "dgc_plan: tensor 0: elements is 4294967296, not 0 to 4294967295");
  bad = good;
  bad.kept = -2;
  EXPECT_EQ(text(bad), "dgc_plan: tensor 0: kept is -2");
  bad = good;
  bad.gradient = reinterpret_cast<const char*>(g) + 2;
  EXPECT_EQ(text(bad), "dgc_plan: tensor 0: address not aligned to its element size");
  EXPECT_EQ(text(bad, kernels::ElementType::kBf16), "");
}

TEST(DgcArguments, StepsAreChecked) {
  float u[4] = {}, v[4] = {}, g[4] = {};
  kernels::DgcPlan plan;
  ASSERT_TRUE(
      kernels::dgc_plan({{g, u, v, nullptr, 4, 1}}, kernels::ElementType::kFp32, &plan).ok());
  std::uint32_t index = 0;
  float value = 0;
  kernels::DgcReport report{};
  kernels::DgcStep good;
  good.indices = &index;
  good.values = &value;
  good.reports = &report;
  EXPECT_EQ(kernels::check_dgc_step(plan, good).text,
            "dgc_step: the plan has no workspace: call dgc_prepare first");
  EXPECT_EQ(kernels::check_dgc_prepare(plan, nullptr, 0).text, "dgc_prepare: workspace is null");
  alignas(256) static char room[512];
  EXPECT_EQ(kernels::check_dgc_prepare(plan, room + 1, sizeof room).text,
            "dgc_prepare: workspace is not aligned to 256 bytes");
  EXPECT_EQ(kernels::check_dgc_prepare(plan, room, sizeof room).text,
            "dgc_prepare: workspace has 512 bytes, the plan needs " +
                std::to_string(plan.workspace_bytes));
  EXPECT_TRUE(kernels::check_dgc_prepare(plan, room, plan.workspace_bytes).ok());
  plan.workspace = room;
  EXPECT_EQ(kernels::check_dgc_step(plan, good).text, "");
  const auto with = [&](auto change) {
    kernels::DgcStep step = good;
    change(step);
    return kernels::check_dgc_step(plan, step).text;
  };
  EXPECT_EQ(with([](kernels::DgcStep& s) { s.momentum = kNan; }),
            "dgc_step: momentum is not finite");
  EXPECT_EQ(with([](kernels::DgcStep& s) { s.scale = kInfinity; }),
            "dgc_step: scale is not finite");
  EXPECT_EQ(with([](kernels::DgcStep& s) { s.weight_decay = kNan; }),
            "dgc_step: weight_decay is not finite");
  EXPECT_EQ(with([](kernels::DgcStep& s) { s.weight_decay = 0.1f; }),
            "dgc_step: weight_decay is not 0, but a tensor has no weight");
  EXPECT_EQ(with([](kernels::DgcStep& s) { s.candidate_scale = -1; }),
            "dgc_step: candidate_scale is negative or not a number");
  EXPECT_EQ(with([](kernels::DgcStep& s) { s.indices = nullptr; }), "dgc_step: indices is null");
  EXPECT_EQ(with([](kernels::DgcStep& s) { s.values = nullptr; }), "dgc_step: values is null");
  EXPECT_EQ(with([](kernels::DgcStep& s) { s.reports = nullptr; }), "dgc_step: reports is null");
  EXPECT_EQ(kernels::check_dgc_inspect(plan, {-1}).text,
            "dgc_inspect: max_norm is -1.000000, not a number from 0 on");
  EXPECT_EQ(kernels::check_dgc_inspect(plan, {1}).text, "");
}

// Two thousand million elements and more: places stay in 64 bits, indices of a tensor in 32.
TEST(DgcPlans, HugeTensors) {
  alignas(16) static float base[4];
  const std::int64_t n = (1ll << 31) + 123;
  const kernels::DgcTensor tensor{base, base, base, nullptr, n, n / 1000};
  kernels::DgcPlan plan;
  ASSERT_TRUE(kernels::dgc_plan({tensor, tensor, tensor}, kernels::ElementType::kBf16, &plan).ok());
  EXPECT_EQ(plan.tiles, 3 * ((n + 2047) / 2048));
  EXPECT_EQ(plan.span_tiles, 32u);
  EXPECT_EQ(plan.packed, 3 * (n / 1000));
  const kernels::DgcRow& last = plan.rows[2];
  EXPECT_EQ(kernels::group_first(last, last.tiles - 1, 0, 0), (n - 1) / 2048 * 2048);
  EXPECT_TRUE(kernels::inside(last, n - 1));
  EXPECT_FALSE(kernels::inside(last, n));
  EXPECT_EQ(last.first_tile, 2 * last.tiles);
}

}  // namespace
}  // namespace syncline::testing
