// The kernels of a DGC step, block by block on the CPU, against the host's step: to the bit.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>

#include "core/compress/momentum_correction.h"
#include "kernels/reference/dgc_step.h"
#include "tests/kernels/serial_dgc.h"

namespace syncline::testing {
namespace {

using Values = std::vector<float>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<std::uint32_t> bits(const Values& values) {
  std::vector<std::uint32_t> result;
  for (const float value : values) result.push_back(kernels::bits_of(value));
  return result;
}

// A tensor on both sides: guarded memory for the kernels, plain vectors for the host's step.
struct BothSides {
  kernels::ElementType type = kernels::ElementType::kFp32;
  GuardedArray<float> wide;
  GuardedArray<std::uint16_t> narrow;
  GuardedArray<float> velocity, residual, weight;
  Values host_gradient, host_velocity, host_residual, host_weight;
  std::int64_t kept = 0;

  void set_gradient(const Values& gradient, int offset = 0) {
    host_gradient.clear();
    if (type == kernels::ElementType::kFp32) {
      wide = {gradient, offset};
      host_gradient = gradient;
      return;
    }
    std::vector<std::uint16_t> halves;
    for (const float g : gradient) {
      if (type == kernels::ElementType::kBf16) {
        halves.push_back(kernels::from_float<kernels::Bf16>(g).bits);
        host_gradient.push_back(kernels::to_float(kernels::Bf16{halves.back()}));
      } else {
        halves.push_back(kernels::from_float<kernels::Fp16>(g).bits);
        host_gradient.push_back(kernels::to_float(kernels::Fp16{halves.back()}));
      }
    }
    narrow = {halves, offset};
  }

  kernels::DgcTensor device() {
    kernels::DgcTensor tensor;
    tensor.gradient = type == kernels::ElementType::kFp32 ? static_cast<const void*>(wide.data())
                                                          : static_cast<const void*>(narrow.data());
    tensor.velocity = velocity.data();
    tensor.residual = residual.data();
    tensor.weight = weight.data();
    tensor.elements = static_cast<std::int64_t>(host_gradient.size());
    tensor.kept = kept;
    return tensor;
  }
};

struct Offsets {
  int gradient = 0, velocity = 0, residual = 0, weight = 0;
};

BothSides make_tensor(const Values& gradient, const Values& velocity, const Values& residual,
                      const Values& weight, std::int64_t kept, Offsets at = {},
                      kernels::ElementType type = kernels::ElementType::kFp32) {
  BothSides tensor;
  tensor.type = type;
  tensor.set_gradient(gradient, at.gradient);
  tensor.velocity = {velocity, at.velocity};
  tensor.residual = {residual, at.residual};
  tensor.weight = {weight, at.weight};
  tensor.host_velocity = velocity;
  tensor.host_residual = residual;
  tensor.host_weight = weight;
  tensor.kept = kept;
  return tensor;
}

Values normal(std::size_t n, std::uint32_t seed, float deviation = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> draw(0, deviation);
  Values values(n);
  for (auto& value : values) value = draw(random);
  return values;
}

BothSides random_tensor(std::size_t n, std::int64_t kept, std::uint32_t seed, Offsets at = {},
                        kernels::ElementType type = kernels::ElementType::kFp32) {
  return make_tensor(normal(n, seed), normal(n, seed + 1), normal(n, seed + 2), normal(n, seed + 3),
                     kept, at, type);
}

// Steps on both sides, compared after each.
class Pair {
 public:
  explicit Pair(std::vector<BothSides> tensors, std::uint32_t seed = 1)
      : tensors_(std::move(tensors)), steps_(plan_of(tensors_), seed) {}

  void step(kernels::DgcStep step, const std::string& label) {
    SCOPED_TRACE(label);
    const auto packed = static_cast<std::size_t>(steps_.plan().packed);
    GuardedArray<std::uint32_t> indices(std::vector<std::uint32_t>(packed, 0x77777777u), 0);
    GuardedArray<float> values(Values(packed, kNan), 1);
    reports.assign(tensors_.size(), kernels::DgcReport{9, 9, 9, kernels::DgcPath::kSkipped});
    step.indices = indices.data();
    step.values = values.data();
    step.reports = reports.data();
    steps_.step(step);
    EXPECT_TRUE(indices.guards_stand() && values.guards_stand());
    const bool skipped = step.skip && *step.skip;
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      SCOPED_TRACE("tensor " + std::to_string(i) + " of " +
                   std::to_string(tensors_[i].host_gradient.size()) + ", kept " +
                   std::to_string(tensors_[i].kept) + ", path " +
                   std::to_string(static_cast<int>(reports[i].path)));
      const std::size_t which = step.one_coefficient ? 0 : i;
      const float coefficient = step.coefficients ? step.coefficients[which] : 1.0f;
      compare(i, step, coefficient, skipped, indices.data(), values.data());
    }
  }

  void next_gradients(std::uint32_t seed, float deviation = 1) {
    for (auto& tensor : tensors_) {
      // In place: the plan keeps the address.
      ASSERT_EQ(tensor.type, kernels::ElementType::kFp32);
      const Values gradient = normal(tensor.host_gradient.size(), seed++, deviation);
      std::copy(gradient.begin(), gradient.end(), tensor.wide.data());
      tensor.host_gradient = gradient;
    }
  }

  std::vector<BothSides>& tensors() { return tensors_; }
  SerialDgc& device() { return steps_; }
  std::vector<kernels::DgcReport> reports;
  std::vector<kernels::SparseMessage> messages;

 private:
  static kernels::DgcPlan plan_of(std::vector<BothSides>& tensors) {
    std::vector<kernels::DgcTensor> list;
    for (auto& tensor : tensors) list.push_back(tensor.device());
    kernels::DgcPlan plan;
    const kernels::ElementType type =
        tensors.empty() ? kernels::ElementType::kFp32 : tensors[0].type;
    EXPECT_EQ(kernels::dgc_plan(list, type, &plan).text, "");
    return plan;
  }

  void compare(std::size_t i, const kernels::DgcStep& step, float coefficient, bool skipped,
               const std::uint32_t* indices, const float* values) {
    BothSides& t = tensors_[i];
    const kernels::DgcRow& row = steps_.plan().rows[i];
    kernels::SparseMessage sent;
    bool held = false;
    if (!skipped) {
      const compress::DgcUpdate update{step.momentum, coefficient * step.scale, step.weight_decay,
                                       step.nesterov};
      held = compress::accumulate(t.host_gradient, t.host_weight, update, t.host_velocity,
                                  t.host_residual);
      sent = kernels::take_out(kernels::largest_magnitudes(t.host_residual, t.kept),
                               t.host_velocity, t.host_residual);
    }
    ASSERT_EQ(bits(t.velocity.values()), bits(t.host_velocity));
    ASSERT_EQ(bits(t.residual.values()), bits(t.host_residual));
    const kernels::DgcReport& report = reports[i];
    ASSERT_EQ(report.selected, sent.indices.size());
    EXPECT_EQ(report.held, held ? 1u : 0u);
    EXPECT_EQ(report.path == kernels::DgcPath::kSkipped, skipped);
    auto got_indices = std::vector(indices + row.packed_at, indices + row.packed_at + row.kept);
    auto got_values = Values(values + row.packed_at, values + row.packed_at + row.kept);
    kernels::SparseMessage padded = sent;
    padded.indices.resize(row.kept, kernels::kPadIndex);
    padded.values.resize(row.kept, 0.0f);
    ASSERT_EQ(got_indices, padded.indices);
    ASSERT_EQ(bits(got_values), bits(padded.values));
    EXPECT_TRUE(t.velocity.guards_stand() && t.residual.guards_stand() && t.weight.guards_stand() &&
                t.wide.guards_stand() && t.narrow.guards_stand());
  }

  std::vector<BothSides> tensors_;
  SerialDgc steps_;
};

template <typename... T>
std::vector<BothSides> list_of(T&&... tensors) {
  std::vector<BothSides> list;
  (list.push_back(std::forward<T>(tensors)), ...);
  return list;
}

constexpr std::size_t kSizes[] = {0,    1,    2,    3,    4,    5,    7,    31,   127,  2047,
                                  2048, 2049, 4095, 4096, 4097, 8191, 8192, 8193, 10007};

TEST(DgcKernels, EverySizeAndEveryKept) {
  std::vector<BothSides> tensors;
  std::uint32_t seed = 1;
  for (const std::size_t n : kSizes) {
    const auto elements = static_cast<std::int64_t>(n);
    for (const std::int64_t kept :
         {std::int64_t{0}, std::int64_t{1}, std::int64_t{2}, elements / 1000, elements / 40,
          elements / 2, elements - 1, elements, elements + 5}) {
      if (kept < 0) continue;
      const int offset = static_cast<int>(seed % 4);
      tensors.push_back(random_tensor(n, kept, seed += 10, {offset, offset, offset, offset}));
    }
  }
  Pair pair(std::move(tensors));
  for (std::uint32_t i = 0; i < 3; ++i) {
    pair.step({}, "step " + std::to_string(i));
    pair.next_gradients(100000 + 1000 * i, 0.1f);
  }
}

TEST(DgcKernels, AddressesOfEveryKind) {
  for (const kernels::ElementType type :
       {kernels::ElementType::kFp32, kernels::ElementType::kBf16, kernels::ElementType::kFp16}) {
    std::vector<BothSides> tensors;
    for (int code = 0; code < 256; code += 3) {
      const Offsets at{code % 4, code / 4 % 4, code / 16 % 4, code / 64};
      tensors.push_back(random_tensor(100 + static_cast<std::size_t>(code), 7,
                                      static_cast<std::uint32_t>(code), at, type));
    }
    Pair pair(std::move(tensors));
    kernels::DgcStep step;
    step.weight_decay = 0.01f;
    pair.step(step, "type " + std::to_string(static_cast<int>(type)));
  }
}

TEST(DgcKernels, TypesMomentumNesterovDecayAndClipping) {
  for (const kernels::ElementType type :
       {kernels::ElementType::kFp32, kernels::ElementType::kBf16, kernels::ElementType::kFp16}) {
    for (const bool nesterov : {false, true}) {
      for (const float decay : {0.0f, 1e-3f}) {
        Pair pair(list_of(random_tensor(5003, 50, 5, {}, type),
                          random_tensor(12345, 12, 6, {1, 1, 1, 1}, type)));
        const Values coefficients{0.37f, 1.0f};
        kernels::DgcStep step;
        step.momentum = 0.875f;
        step.scale = 8;
        step.nesterov = nesterov;
        step.weight_decay = decay;
        step.coefficients = coefficients.data();
        pair.step(step, "first");
        pair.step(step, "second");
        step.one_coefficient = true;
        pair.step(step, "one coefficient");
      }
    }
  }
}

// The state against exact arithmetic: each rounding is at most half a unit of what it rounds.
TEST(DgcKernels, UpdateIsCloseToExactArithmetic) {
  const std::size_t n = 4001;
  const Values g = normal(n, 1), u = normal(n, 2), v = normal(n, 3), w = normal(n, 4);
  for (const bool nesterov : {false, true}) {
    Pair pair(list_of(make_tensor(g, u, v, w, 0)));
    kernels::DgcStep step;
    step.weight_decay = 0.02f;
    step.scale = 3;
    step.nesterov = nesterov;
    pair.step(step, "");
    const Values got_u = pair.tensors()[0].velocity.values();
    const Values got_v = pair.tensors()[0].residual.values();
    for (std::size_t i = 0; i < n; ++i) {
      const double corrected = 3.0 * g[i] + static_cast<double>(0.02f) * w[i];
      const double m = static_cast<double>(0.9f);
      const double next_u = nesterov ? m * (u[i] + corrected) : m * u[i] + corrected;
      const double next_v = v[i] + next_u + (nesterov ? corrected : 0.0);
      const double size = std::fabs(m * u[i]) + 3 * std::fabs(static_cast<double>(g[i])) +
                          std::fabs(0.02 * w[i]) + std::fabs(static_cast<double>(v[i]));
      const double tolerance =
          4 * static_cast<double>(std::numeric_limits<float>::epsilon()) * size;
      EXPECT_TRUE(std::fabs(got_u[i] - next_u) <= tolerance) << i;
      EXPECT_TRUE(std::fabs(got_v[i] - next_v) <= 2 * tolerance) << i;
    }
  }
}

// Kinds of residuals that selections stumble over. Gradient and velocity are zero: v' = v.
struct Kind {
  const char* name;
  std::function<float(std::size_t, std::mt19937&)> value;
};

std::vector<Kind> kinds() {
  const auto uniform = [](std::mt19937& random) {
    return static_cast<float>(random() % 2000000) / 1e6f - 1;
  };
  return {
      {"all equal", [](std::size_t, std::mt19937&) { return 0.5f; }},
      {"equal but for the sign", [](std::size_t i, std::mt19937&) { return i % 3 ? 2.f : -2.f; }},
      {"all zero", [](std::size_t, std::mt19937&) { return 0.0f; }},
      {"zeros of both signs", [](std::size_t i, std::mt19937&) { return i % 2 ? -0.0f : 0.0f; }},
      {"one huge", [](std::size_t i, std::mt19937&) { return i == 3000 ? 1e30f : 0.0f; }},
      {"few levels",
       [](std::size_t, std::mt19937& random) { return static_cast<float>(random() % 5) - 2; }},
      {"ties where tiles meet",
       [](std::size_t i, std::mt19937&) { return (i + 2) % 2048 < 4 ? -1.0f : 0.25f; }},
      {"ramp up", [](std::size_t i, std::mt19937&) { return static_cast<float>(i); }},
      {"ramp down", [](std::size_t i, std::mt19937&) { return 1e6f - static_cast<float>(i); }},
      {"subnormal",
       [](std::size_t, std::mt19937& random) {
         return kernels::float_of(static_cast<unsigned>(random() % 5000));
       }},
      {"layered scales",
       [=](std::size_t i, std::mt19937& random) {
         return uniform(random) * std::exp2(static_cast<float>(i / 700) * 4 - 40);
       }},
      {"hot row",
       [=](std::size_t i, std::mt19937& random) {
         return uniform(random) * (i >= 4096 && i < 5120 ? 100.0f : 0.01f);
       }},
      {"one bin",
       [](std::size_t, std::mt19937& random) {
         return kernels::float_of(0x3f800000u + static_cast<unsigned>(random() % 0x100000));
       }},
      {"largest floats",
       [](std::size_t i, std::mt19937&) {
         return i % 2 ? std::numeric_limits<float>::max() : -std::numeric_limits<float>::max();
       }},
      {"neighbours",
       [](std::size_t i, std::mt19937&) {
         return kernels::float_of(0x3f7ffff0u + static_cast<unsigned>(i % 32));
       }},
      {"some not a number",
       [=](std::size_t i, std::mt19937& random) {
         return i % 1000 == 7 ? kNan : i % 1000 == 8 ? kInfinity : uniform(random);
       }},
      {"nothing but not a number", [](std::size_t, std::mt19937&) { return kNan; }},
  };
}

std::vector<std::int64_t> every_kept(std::int64_t n) {
  return {0, 1, n / 1000, n / 100, n / 32, n / 31, n / 2, n - 1, n + 1};
}

TEST(DgcKernels, ResidualsOfEveryKindOnEveryPath) {
  const std::size_t n = 9001;
  const Values zero(n, 0.0f);
  for (const Kind& kind : kinds()) {
    std::mt19937 random(11);
    Values residual(n);
    for (std::size_t i = 0; i < n; ++i) residual[i] = kind.value(i, random);
    // No guess, a good one, none that is reached, one that all reach, one just on the threshold.
    for (const float scale : {0.0f, 0.95f, 1e20f, 1e-20f, 1.0f, 1.5f}) {
      std::vector<BothSides> tensors;
      for (const std::int64_t kept : every_kept(n)) {
        tensors.push_back(make_tensor(zero, zero, residual, zero, kept));
      }
      Pair pair(std::move(tensors));
      kernels::DgcStep step;
      step.candidate_scale = scale;
      for (int i = 0; i < 2; ++i) {
        pair.step(step, std::string(kind.name) + ", scale " + std::to_string(scale) + ", step " +
                            std::to_string(i));
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

// The paths are taken that the test means to take, and all of them give the same bits.
TEST(DgcKernels, AllPathsGiveTheSameBits) {
  struct Way {
    float scale;
    kernels::DgcPath path;
  };
  for (const Way way :
       {Way{0.0f, kernels::DgcPath::kExact}, Way{0.95f, kernels::DgcPath::kSpeculative},
        Way{1.9f, kernels::DgcPath::kExact}, Way{100.0f, kernels::DgcPath::kRecount},
        Way{1e-3f, kernels::DgcPath::kExact}}) {
    Pair pair(list_of(random_tensor(20011, 20, 77)));
    pair.step({}, "first");
    EXPECT_EQ(pair.reports[0].path, kernels::DgcPath::kExact);
    pair.next_gradients(5, 0.05f);
    kernels::DgcStep step;
    step.momentum = 0.5f;
    step.candidate_scale = way.scale;
    // The velocity carries on: thresholds rise a little, so that the guess holds.
    pair.step(step, "scale " + std::to_string(way.scale));
    EXPECT_EQ(pair.reports[0].path, way.path) << way.scale;
  }
  Pair whole(list_of(random_tensor(3000, 1500, 78),
                     make_tensor(Values(20011), Values(20011), Values(20011, 1.0f), {}, 20)));
  whole.step({}, "whole");
  EXPECT_EQ(whole.reports[0].path, kernels::DgcPath::kWhole);  // more than one in 32 kept
  EXPECT_EQ(whole.reports[1].path, kernels::DgcPath::kWhole);  // all equal: too many candidates
}

// Candidates exactly kept, one less, exactly the list's room, one more.
TEST(DgcKernels, ListsAtTheirEdges) {
  const std::size_t n = 30000;
  const std::int64_t kept = 10;
  const std::size_t room = 16 * 10 + 1024;
  struct Edge {
    std::size_t candidates;
    kernels::DgcPath path;
  };
  for (const Edge edge :
       {Edge{10, kernels::DgcPath::kSpeculative}, Edge{9, kernels::DgcPath::kExact},
        Edge{room, kernels::DgcPath::kSpeculative}, Edge{room + 1, kernels::DgcPath::kWhole}}) {
    Values first(n, 0.0f);
    for (std::size_t i = 0; i < 10; ++i) first[i * 977] = 10.0f;
    Pair pair(list_of(make_tensor(Values(n), Values(n), first, {}, kept)));
    kernels::DgcStep step;
    step.momentum = 0;
    step.candidate_scale = 1;
    pair.step(step, "first");
    // Now everything that was sent is 0, and the gradient brings the candidates: 10 and above.
    Values next(n, 9.9f);
    for (std::size_t i = 0; i < edge.candidates; ++i) next[(i * 23 + 5) % n] = 10.0f;
    auto& tensor = pair.tensors()[0];
    std::copy(next.begin(), next.end(), tensor.wide.data());
    tensor.host_gradient = next;
    // 9.9 and 10 lie in one bin of eighths of an octave: without a guess all are candidates.
    pair.step(step, std::to_string(edge.candidates));
    if (edge.candidates == 9) {
      EXPECT_NE(pair.reports[0].path, kernels::DgcPath::kSpeculative);
    } else {
      EXPECT_EQ(pair.reports[0].path, edge.path) << edge.candidates;
    }
  }
}

TEST(DgcKernels, ManySteps) {
  Pair pair(list_of(random_tensor(30011, 30, 1), random_tensor(4096, 100, 2),
                    random_tensor(7777, 0, 3), random_tensor(50000, 500, 4)));
  int speculative = 0;
  for (std::uint32_t i = 0; i < 25; ++i) {
    pair.step({}, "step " + std::to_string(i));
    for (const auto& report : pair.reports) {
      speculative += report.path == kernels::DgcPath::kSpeculative;
    }
    pair.next_gradients(1000 * i, 0.3f);
  }
  EXPECT_GT(speculative, 20);
}

TEST(DgcKernels, SevenHundredTensors) {
  std::vector<BothSides> tensors;
  for (std::uint32_t i = 0; i < 700; ++i) {
    tensors.push_back(random_tensor(i % 7 == 0 ? 0 : (i * 37) % 400, i % 9, i));
  }
  Pair pair(std::move(tensors));
  pair.step({}, "first");
  pair.step({}, "second");
}

TEST(DgcKernels, NoTensors) {
  Pair pair({});
  pair.step({}, "none");
  EXPECT_EQ(pair.device().plan().spans, 0);
}

// Long tensors: spans of 32 tiles, and more spans than a block has threads.
TEST(DgcKernels, MoreSpansThanThreads) {
  const std::size_t n = 2048 * 4 * 257 + 77;
  Pair pair(list_of(random_tensor(n, static_cast<std::int64_t>(n / 1000), 3)));
  EXPECT_GT(pair.device().plan().rows[0].spans, 256u);
  pair.step({}, "first");
  pair.step({}, "second");
}

TEST(DgcKernels, ASkippedStepChangesNothing) {
  Pair pair(list_of(random_tensor(5000, 50, 1), random_tensor(100, 200, 2)));
  const std::int32_t no = 0, yes = 1;
  kernels::DgcStep step;
  step.skip = &no;
  pair.step(step, "first");
  step.skip = &yes;
  pair.step(step, "skipped");  // compared with an unchanged host side
  EXPECT_EQ(pair.reports[0].path, kernels::DgcPath::kSkipped);
  step.skip = &no;
  pair.step(step, "goes on");
  EXPECT_NE(pair.reports[0].path, kernels::DgcPath::kSkipped);
}

TEST(DgcKernels, InspectionFindsWhatIsNotFinite) {
  for (const float bad : {kNan, kInfinity, -kInfinity}) {
    Values gradient = normal(9001, 1);
    gradient[7777] = bad;
    Pair pair(list_of(random_tensor(500, 5, 2),
                      make_tensor(gradient, normal(9001, 2), normal(9001, 3), {}, 9)));
    pair.device().inspect({});
    kernels::DgcStep step;
    step.skip = pair.device().tables().skip;
    EXPECT_EQ(*step.skip, 1);
    pair.step(step, "skipped");
    EXPECT_EQ(pair.reports[1].path, kernels::DgcPath::kSkipped);
    pair.next_gradients(9);
    pair.device().inspect({});
    EXPECT_EQ(*step.skip, 0);
    pair.step(step, "goes on");
  }
}

// Without the inspection, elements are held one by one.
TEST(DgcKernels, WhatIsNotFiniteIsHeld) {
  Values gradient = normal(5000, 1);
  gradient[4] = kNan;
  gradient[4999] = -kInfinity;
  Values residual = normal(5000, 2);
  residual[17] = std::numeric_limits<float>::max();
  gradient[17] = std::numeric_limits<float>::max();
  residual[18] = kNan;
  Pair pair(
      list_of(make_tensor(gradient, Values(5000), residual, {}, 20), random_tensor(5000, 20, 5)));
  pair.step({}, "held");
  EXPECT_EQ(pair.reports[0].held, 1u);
  EXPECT_EQ(pair.reports[1].held, 0u);
  pair.next_gradients(50);
  pair.step({}, "later");
}

TEST(DgcKernels, ClippingByTheNorm) {
  for (const kernels::ElementType type :
       {kernels::ElementType::kFp32, kernels::ElementType::kBf16, kernels::ElementType::kFp16}) {
    Pair pair(list_of(random_tensor(9001, 9, 1, {1, 2, 3, 0}, type),
                      random_tensor(3, 1, 2, {}, type), random_tensor(0, 1, 3, {}, type)));
    for (const float limit : {0.0f, 5.0f, 1e9f}) {
      pair.device().inspect({limit});
      const float* coefficients = pair.device().tables().coefficients;
      for (std::size_t i = 0; i < 3; ++i) {
        const float expected =
            kernels::dgc_clip_coefficient(pair.tensors()[i].host_gradient, limit);
        EXPECT_NEAR(coefficients[i], expected, 1e-6f * expected);
      }
      kernels::DgcStep step;
      step.coefficients = coefficients;
      pair.step(step, "limit " + std::to_string(limit));
    }
  }
}

// ---- Laws -------------------------------------------------------------------------------------

struct State {
  Values velocity, residual;
  kernels::SparseMessage sent;
};

State one_step(const Values& g, const Values& u, const Values& v, std::int64_t kept,
               kernels::DgcStep step = {}) {
  Pair pair(list_of(make_tensor(g, u, v, Values(g.size()), kept)));
  const auto packed = static_cast<std::size_t>(pair.device().plan().packed);
  State state;
  state.sent.indices.resize(packed);
  state.sent.values.resize(packed);
  kernels::DgcReport report;
  step.indices = state.sent.indices.data();
  step.values = state.sent.values.data();
  step.reports = &report;
  pair.device().step(step);
  state.velocity = pair.tensors()[0].velocity.values();
  state.residual = pair.tensors()[0].residual.values();
  return state;
}

Values times(const Values& values, float factor) {
  Values result = values;
  for (auto& value : result) value *= factor;
  return result;
}

TEST(DgcLaws, PowersOfTwoAndSignsCommute) {
  const std::size_t n = 6007;
  const Values g = normal(n, 1), u = normal(n, 2), v = normal(n, 3);
  const State plain = one_step(g, u, v, 60);
  for (const float factor : {2.0f, 0.125f, 1024.0f, -1.0f, -4.0f}) {
    const State scaled = one_step(times(g, factor), times(u, factor), times(v, factor), 60);
    EXPECT_EQ(scaled.sent.indices, plain.sent.indices);
    EXPECT_EQ(scaled.sent.values, times(plain.sent.values, factor));
    EXPECT_EQ(scaled.residual, times(plain.residual, factor));
    EXPECT_EQ(scaled.velocity, times(plain.velocity, factor));
  }
}

TEST(DgcLaws, SentAndResidualAreDisjointAndOrdered) {
  const std::size_t n = 6007;
  const Values g = normal(n, 1), u = normal(n, 2), v = normal(n, 3);
  const State all = one_step(g, u, v, 0);  // the update alone
  const State some = one_step(g, u, v, 600);
  float smallest = kInfinity;
  Values rebuilt = some.residual;
  for (std::size_t i = 0; i < some.sent.indices.size(); ++i) {
    const std::uint32_t at = some.sent.indices[i];
    EXPECT_TRUE(i == 0 || at > some.sent.indices[i - 1]);
    EXPECT_EQ(some.velocity[at], 0.0f);
    EXPECT_EQ(some.residual[at], 0.0f);
    rebuilt[at] = some.sent.values[i];
    smallest = std::min(smallest, std::fabs(some.sent.values[i]));
  }
  EXPECT_EQ(rebuilt, all.residual);
  for (const float left : some.residual) EXPECT_LE(std::fabs(left), smallest);
}

// All sent at once and masked: plain SGD. Without momentum, whole numbers lose nothing.
TEST(DgcLaws, LimitsAreTheKnownMethods) {
  const std::size_t n = 3001;
  const Values g = normal(n, 1);
  const State all = one_step(g, Values(n), Values(n), static_cast<std::int64_t>(n));
  EXPECT_EQ(all.sent.values, g);
  EXPECT_EQ(all.velocity, Values(n));

  Values sum(n), received(n), u(n), v(n);
  std::mt19937 random(3);
  kernels::DgcStep no_momentum;
  no_momentum.momentum = 0;
  for (int step = 0; step < 10; ++step) {
    Values whole(n);
    for (auto& value : whole) value = static_cast<float>(random() % 2001) - 1000;
    const State state = one_step(whole, u, v, 100, no_momentum);
    u = state.velocity;
    v = state.residual;
    for (std::size_t i = 0; i < n; ++i) sum[i] += whole[i];
    for (std::size_t i = 0; i < 100; ++i) received[state.sent.indices[i]] += state.sent.values[i];
  }
  for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(received[i] + v[i], sum[i]);
}

TEST(DgcLaws, TensorsDoNotKnowEachOther) {
  const auto tensor = [](std::uint32_t i) {
    return random_tensor(1000 + 997 * i, 5 + 20 * i, 100 * i);
  };
  std::vector<BothSides> rising, falling;
  for (std::uint32_t i = 0; i < 8; ++i) rising.push_back(tensor(i));
  for (std::uint32_t i = 8; i-- > 0;) falling.push_back(tensor(i));
  Pair a(std::move(rising)), b(std::move(falling));
  a.step({}, "rising");
  b.step({}, "falling");
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(a.tensors()[i].residual.values(), b.tensors()[7 - i].residual.values());
    EXPECT_EQ(a.tensors()[i].velocity.values(), b.tensors()[7 - i].velocity.values());
  }
}

// Blocks in any order, threads in either: the same bits.
TEST(DgcLaws, TheOrderOfBlocksDoesNotMatter) {
  std::vector<Values> residuals;
  for (std::uint32_t seed = 0; seed < 5; ++seed) {
    Pair pair(list_of(random_tensor(40009, 400, 9)), seed);
    pair.step({}, "first");
    pair.step({}, "second");
    residuals.push_back(pair.tensors()[0].residual.values());
    EXPECT_EQ(residuals.back(), residuals.front());
  }
}

}  // namespace
}  // namespace syncline::testing
