// The kernels of the sparse update, block by block on the CPU, against the host's: to the bit.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "kernels/reference/sparse_apply.h"
#include "kernels/sparse_parts.h"

namespace syncline::kernels {
namespace {

using Ranks = std::vector<SparseMessage>;  // of one tensor

struct SparseCase {
  std::int64_t elements;
  std::int64_t places;
  Ranks ranks;
};

std::vector<std::uint32_t> chosen(std::int64_t elements, std::size_t count, std::mt19937& random) {
  std::vector<std::uint32_t> all(static_cast<std::size_t>(elements));
  std::iota(all.begin(), all.end(), 0u);
  std::vector<std::uint32_t> result;
  std::sample(all.begin(), all.end(), std::back_inserter(result), count, random);
  return result;
}

// Indices in no order, as the sampled threshold sends them.
SparseCase shuffled(SparseCase one, std::uint32_t seed) {
  for (auto& message : one.ranks) {
    std::mt19937 random(seed++);
    std::shuffle(message.indices.begin(), message.indices.end(), random);
  }
  return one;
}

// Every rank sends up to `places` random pairs; some send less, and pad.
SparseCase random_case(std::int64_t elements, std::int64_t places, int ranks, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  SparseCase made{elements, places, {}};
  for (int rank = 0; rank < ranks; ++rank) {
    const auto most = static_cast<std::size_t>(places);
    const std::size_t count = rank % 3 == 2 ? random() % (most + 1) : most;
    SparseMessage message{chosen(elements, count, random), {}};
    for (std::size_t i = 0; i < count; ++i) message.values.push_back(normal(random));
    made.ranks.push_back(std::move(message));
  }
  return made;
}

struct Applied {
  std::vector<std::vector<float>> weights;
  bool rejected = false;
};

std::vector<std::vector<float>> first_weights(const std::vector<SparseCase>& cases) {
  std::mt19937 random(4);
  std::normal_distribution<float> normal;
  std::vector<std::vector<float>> weights;
  for (const auto& one : cases) {
    weights.emplace_back(static_cast<std::size_t>(one.elements));
    for (auto& weight : weights.back()) weight = normal(random);
  }
  return weights;
}

// The two launches, blocks in a random order.
Applied apply_serially(const std::vector<SparseCase>& cases, int ranks, float rate,
                       std::uint32_t seed, bool rising = true) {
  Applied applied{first_weights(cases), false};
  std::vector<SparseTensor> tensors;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    tensors.push_back({applied.weights[i].data(), cases[i].elements, cases[i].places});
  }
  SparsePlan plan;
  EXPECT_EQ(sparse_plan(tensors, &plan).text, "");
  std::vector<unsigned char> memory(plan.workspace_bytes + 256, 0xab);
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  const SparseTables tables = sparse_tables(plan, memory.data() + (256 - address % 256) % 256);

  const std::int64_t stride = plan.packed + 3;
  std::vector<std::uint32_t> indices(static_cast<std::size_t>(stride * ranks), 0x77777777u);
  std::vector<float> values(indices.size(), std::numeric_limits<float>::quiet_NaN());
  for (int rank = 0; rank < ranks; ++rank) {
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const auto at = static_cast<std::size_t>(rank * stride + plan.rows[i].packed_at);
      const auto& message = cases[i].ranks[static_cast<std::size_t>(rank)];
      for (std::size_t j = 0; j < static_cast<std::size_t>(cases[i].places); ++j) {
        const bool pair = j < message.indices.size();
        indices[at + j] = pair ? message.indices[j] : kPadIndex;
        values[at + j] = pair ? message.values[j] : 0.0f;
      }
    }
  }
  std::uint32_t rejected = 0;
  const SparseApply apply{ranks, indices.data(), values.data(), stride, rate, &rejected, rising};

  std::mt19937 random(seed);
  for (std::uint32_t i = 0; i < plan.rows.size(); ++i) {
    SerialBlock block(random() % 2 == 0);
    sparse_prepare_row(block, tables, plan.rows[i], i);
  }
  if (ranks == 0) return applied;  // as the launcher does
  for (int rank = 0; rank < ranks; ++rank) {
    for (std::uint32_t i = 0; i < plan.checks; ++i) {
      SerialBlock block(random() % 2 == 0);
      sparse_check_piece(block, tables, apply, i, rank);
    }
  }
  if (!rising) {
    for (int rank = 0; rank < ranks; ++rank) {
      for (std::uint32_t i = 0; i < plan.checks; ++i) {
        SerialBlock block(random() % 2 == 0);
        sparse_apply_piece(block, tables, apply, i, rank);
      }
    }
    applied.rejected = rejected != 0;
    return applied;
  }
  std::vector<std::uint32_t> order(static_cast<std::size_t>(plan.parts));
  std::iota(order.begin(), order.end(), 0u);
  std::shuffle(order.begin(), order.end(), random);
  for (const std::uint32_t part : order) {
    SerialBlock block(random() % 2 == 0);
    SparseShared shared;
    sparse_apply_part(block, shared, tables, apply, part);
  }
  applied.rejected = rejected != 0;
  return applied;
}

void expect_same(const std::vector<SparseCase>& cases, int ranks, float rate, std::uint32_t seed) {
  const Applied applied = apply_serially(cases, ranks, rate, seed);
  EXPECT_FALSE(applied.rejected);
  auto expected = first_weights(cases);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    ASSERT_TRUE(apply_messages(cases[i].ranks, rate, expected[i]));
    ASSERT_EQ(applied.weights[i], expected[i]) << "tensor " << i;
  }
}

TEST(SparseApplyKernel, AnyNumberOfRanksAndPlaces) {
  std::uint32_t seed = 1;
  for (const int ranks : {0, 1, 2, 7, 8, 9, 17, 64}) {
    std::vector<SparseCase> cases;
    for (const std::int64_t elements : {0, 1, 3, 100, 129, 4097, 20011}) {
      for (const std::int64_t places :
           {std::int64_t{0}, std::int64_t{1}, elements / 100, elements / 3, elements}) {
        if (places > elements) continue;
        cases.push_back(random_case(elements, places, ranks, ++seed));
      }
    }
    expect_same(cases, ranks, 0.25f, seed);
  }
}

// All ranks in the same row, or each in a row of its own; rank 0 with nothing at all.
TEST(SparseApplyKernel, UnevenLists) {
  SparseCase hot{100000, 1000, {}};
  SparseCase apart{100000, 1000, {}};
  SparseCase empty_first{100000, 1000, {}};
  for (std::uint32_t rank = 0; rank < 8; ++rank) {
    SparseMessage row, own, late;
    for (std::uint32_t i = 0; i < 1000; ++i) {
      row.indices.push_back(5000 + i);
      own.indices.push_back(rank * 10000 + i);
      late.indices.push_back(99000 + i);
      row.values.push_back(static_cast<float>(i * rank) - 500);
    }
    own.values = late.values = row.values;
    hot.ranks.push_back(row);
    apart.ranks.push_back(own);
    empty_first.ranks.push_back(rank == 0 ? SparseMessage{} : late);
  }
  expect_same({hot, apart, empty_first}, 8, 0.125f, 3);
}

TEST(SparseApplyKernel, SevenHundredTensors) {
  std::vector<SparseCase> cases;
  for (std::uint32_t i = 0; i < 700; ++i) {
    cases.push_back(random_case(i % 50 * 7, std::min<std::int64_t>(i % 50 * 7, i % 13), 4, i));
  }
  expect_same(cases, 4, 0.5f, 9);
}

TEST(SparseApplyKernel, ListsInNoOrder) {
  std::vector<SparseCase> cases;
  for (const std::int64_t elements : {1, 100, 5000, 20011}) {
    cases.push_back(shuffled(random_case(elements, elements / 3, 5, 7), 1));
  }
  const Applied applied = apply_serially(cases, 5, 0.25f, 2, false);
  EXPECT_FALSE(applied.rejected);
  auto expected = first_weights(cases);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    ASSERT_TRUE(apply_messages(cases[i].ranks, 0.25f, expected[i], false));
    EXPECT_EQ(applied.weights[i], expected[i]);
  }
  EXPECT_TRUE(apply_serially(cases, 5, 0.25f, 2, true).rejected);
  cases[2].ranks[3].indices[7] = 5000;
  EXPECT_TRUE(apply_serially(cases, 5, 0.25f, 2, false).rejected);
}

TEST(SparseApplyKernel, IsCloseToExactArithmetic) {
  const SparseCase one = random_case(5000, 1000, 16, 8);
  const Applied applied = apply_serially({one}, 16, 0.1f, 1);
  const auto before = first_weights({one});
  std::vector<double> exact(before[0].begin(), before[0].end());
  for (const auto& message : one.ranks) {
    for (std::size_t i = 0; i < message.indices.size(); ++i) {
      exact[message.indices[i]] -= static_cast<double>(0.1f) * message.values[i];
    }
  }
  for (std::size_t i = 0; i < exact.size(); ++i) {
    EXPECT_TRUE(std::fabs(applied.weights[0][i] - exact[i]) <= 1e-5) << i;
  }
}

TEST(SparseApplyKernel, TheOrderOfBlocksDoesNotMatter) {
  const SparseCase one = random_case(50000, 3000, 8, 8);
  const Applied first = apply_serially({one}, 8, 0.1f, 1);
  for (std::uint32_t seed = 2; seed < 6; ++seed) {
    EXPECT_EQ(apply_serially({one}, 8, 0.1f, seed).weights, first.weights);
  }
}

TEST(SparseApplyKernel, BadListsChangeNothing) {
  const SparseCase good = random_case(5000, 2000, 4, 8);
  const auto refused = [&](auto spoil) {
    SparseCase bad = good;
    spoil(bad.ranks[1]);
    const std::vector<SparseCase> cases{good, bad};
    const Applied applied = apply_serially(cases, 4, 0.1f, 1);
    auto untouched = first_weights(cases);
    EXPECT_EQ(applied.weights, untouched);
    EXPECT_FALSE(apply_messages(bad.ranks, 0.1f, untouched[1]));
    EXPECT_EQ(applied.weights[1], untouched[1]);
    return applied.rejected;
  };
  EXPECT_TRUE(refused([](auto& m) { m.indices.back() = 5000; }));
  EXPECT_TRUE(refused([](auto& m) { m.indices.back() = 0xfffffffeu; }));
  EXPECT_TRUE(refused([](auto& m) { m.indices[1000] = m.indices[999]; }));
  EXPECT_TRUE(refused([](auto& m) { std::swap(m.indices[1023], m.indices[1024]); }));
  EXPECT_TRUE(refused([](auto& m) { m.values[77] = std::numeric_limits<float>::quiet_NaN(); }));
  EXPECT_TRUE(refused([](auto& m) { m.values[0] = std::numeric_limits<float>::infinity(); }));
  EXPECT_TRUE(refused([](auto& m) { m.indices[500] = kPadIndex; }));  // a pair behind a pad
}

TEST(SparseApplyArguments, WhatIsWrongIsNamed) {
  float weight[4] = {};
  SparsePlan plan;
  EXPECT_EQ(sparse_plan({{nullptr, 4, 1}}, &plan).text, "sparse_plan: tensor 0: weight is null");
  EXPECT_EQ(sparse_plan({{weight, 4, 5}}, &plan).text,
            "sparse_plan: tensor 0: places is 5 of 4 elements");
  EXPECT_EQ(sparse_plan({{weight, 4, 1}, {weight, -4, 1}}, &plan).text,
            "sparse_plan: tensor 1: elements is -4, not 0 to 4294967295");
  ASSERT_TRUE(sparse_plan({{weight, 4, 2}}, &plan).ok());
  std::uint32_t indices[4] = {}, rejected = 0;
  float values[4] = {};
  const SparseApply good{2, indices, values, 2, 0.1f, &rejected, true};
  EXPECT_EQ(check_sparse_apply(plan, good).text,
            "sparse_apply: the plan has no workspace: call sparse_prepare first");
  EXPECT_EQ(check_sparse_prepare(plan, nullptr, 0).text, "sparse_prepare: workspace is null");
  alignas(256) static char room[1024];
  EXPECT_EQ(check_sparse_prepare(plan, room, 1).text,
            "sparse_prepare: workspace has 1 bytes, the plan needs 768");
  plan.workspace = room;
  EXPECT_EQ(check_sparse_apply(plan, good).text, "");
  const auto with = [&](auto change) {
    SparseApply apply = good;
    change(apply);
    return check_sparse_apply(plan, apply).text;
  };
  EXPECT_EQ(with([](SparseApply& a) { a.ranks = -1; }),
            "sparse_apply: ranks is -1, not 0 to 65535");
  EXPECT_EQ(with([](SparseApply& a) { a.rate = std::numeric_limits<float>::infinity(); }),
            "sparse_apply: rate is not finite");
  EXPECT_EQ(with([](SparseApply& a) { a.rejected = nullptr; }), "sparse_apply: rejected is null");
  EXPECT_EQ(with([](SparseApply& a) { a.indices = nullptr; }), "sparse_apply: indices is null");
  EXPECT_EQ(with([](SparseApply& a) { a.values = nullptr; }), "sparse_apply: values is null");
  EXPECT_EQ(with([](SparseApply& a) { a.rank_stride = 1; }),
            "sparse_apply: rank_stride is 1, but a rank's lists have 2 places");
}

}  // namespace
}  // namespace syncline::kernels
