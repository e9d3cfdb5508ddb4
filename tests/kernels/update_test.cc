// Updates, tile by tile on the CPU, against the host twins.

#include "kernels/update.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "kernels/reference/adam.h"
#include "kernels/reference/sgd.h"
#include "kernels/update_tile.h"
#include "tests/kernels/guarded.h"

namespace syncline::kernels {
namespace {

// What the kernel does: the rule is made once, every tile by every thread, the state at the end.
template <typename Rule, typename Gradient>
void emulate(const FlatBucket& bucket, const typename Rule::Options& options,
             const GradientScaling& scaling, UpdateState& state) {
  Rule rule;
  make_rule(options, state, rule);
  const bool skip = skips(scaling);
  const std::int64_t tiles = tiles_of(bucket.elements, update_shift(bucket));
  for (std::int64_t tile = 0; tile < tiles && !skip; ++tile) {
    for (int thread = 0; thread < kBlockThreads; ++thread) {
      update_tile<Gradient>(bucket, rule, factor_of(scaling), tile, thread);
    }
  }
  advance(options, skip, state);
}

std::vector<float> random_values(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> values(size);
  for (auto& value : values) value = normal(random);
  return values;
}

// A bucket whose arrays begin at offsets of their own.
template <typename Gradient>
struct UpdateSetting {
  static constexpr float kFactor = 0.25f;
  std::size_t size;
  Guarded<float> weights;
  Guarded<Gradient> gradients;
  Guarded<float> first;
  Guarded<float> second;
  Guarded<Bf16> copy;
  FlatBucket bucket;
  GradientScaling scaling;
  UpdateState state;
  float clip = 0.5f;
  std::int32_t non_finite = 0;

  explicit UpdateSetting(std::size_t n, int a = 0, int b = 0, int c = 0, int d = 0)
      : size(n),
        weights(n, a, random_values(n, 1)),
        gradients(n, b, random_values(n, 2)),
        first(n, c, std::vector<float>(n)),
        second(n, d, std::vector<float>(n)),
        copy(n, b) {
    const auto type = std::is_same_v<Gradient, float>  ? ElementType::kFp32
                      : std::is_same_v<Gradient, Bf16> ? ElementType::kBf16
                                                       : ElementType::kFp16;
    bucket = {weights.data(),
              gradients.data(),
              type,
              first.data(),
              second.data(),
              copy.data(),
              static_cast<std::int64_t>(n)};
    scaling = {0.5f, &clip, &non_finite};
  }

  // The gradients of another step, and what the twin takes: scaled.
  std::vector<float> next_gradients(unsigned seed) {
    auto values = random_values(size, seed);
    for (std::size_t i = 0; i < size; ++i) {
      gradients.data()[i] = from_float<Gradient>(values[i]);
      values[i] = kFactor * gradients[i];
    }
    return values;
  }

  void check_copy_and_guards() {
    for (std::size_t i = 0; i < size; ++i) {
      ASSERT_EQ(copy.data()[i].bits, from_float<Bf16>(weights[i]).bits) << i;
    }
    EXPECT_TRUE(weights.intact() && gradients.intact() && first.intact() && second.intact() &&
                copy.intact());
  }
};

template <typename Rule, typename Gradient>
void check_sgd(UpdateSetting<Gradient>& setting, const SgdOptions& options) {
  ASSERT_EQ(check_update(setting.bucket, options, setting.scaling, &setting.state).text, "");
  const SgdSettings settings{options.learning_rate, options.momentum, options.dampening,
                             options.weight_decay, options.nesterov};
  auto weights = setting.weights.values();
  SgdMemory memory;
  for (unsigned step = 0; step < 3; ++step) {
    const auto gradients = setting.next_gradients(step + 10);
    emulate<Rule, Gradient>(setting.bucket, options, setting.scaling, setting.state);
    sgd_step(settings, gradients, weights, memory);
    ASSERT_EQ(setting.weights.values(), weights);
    if (options.momentum != 0) {
      ASSERT_EQ(setting.first.values(), memory.velocity);
    }
  }
  EXPECT_EQ(setting.state.steps, 3);
  setting.check_copy_and_guards();
}

template <typename Gradient>
void check_adam(UpdateSetting<Gradient>& setting, const AdamOptions& options) {
  ASSERT_EQ(check_update(setting.bucket, options, setting.scaling, &setting.state).text, "");
  const AdamSettings settings{options.learning_rate, options.beta1,        options.beta2,
                              options.epsilon,       options.weight_decay, options.decoupled};
  auto weights = setting.weights.values();
  AdamMemory memory;
  for (unsigned step = 0; step < 3; ++step) {
    const auto gradients = setting.next_gradients(step + 10);
    emulate<AdamRule, Gradient>(setting.bucket, options, setting.scaling, setting.state);
    adam_step(settings, gradients, weights, memory);
    ASSERT_EQ(setting.first.values(), memory.mean);
    ASSERT_EQ(setting.second.values(), memory.variance);
    // The corrections are powers there and products here: a last bit may differ.
    for (std::size_t i = 0; i < setting.size; ++i) {
      ASSERT_NEAR(setting.weights[i], weights[i], 3e-7f * std::fabs(weights[i]) + 1e-9f) << i;
    }
    weights = setting.weights.values();
  }
  setting.check_copy_and_guards();
}

template <typename Gradient>
void check_every_rule(std::size_t size, int a, int b, int c, int d) {
  SCOPED_TRACE(std::to_string(size) + " elements at offsets " + std::to_string(a) + " " +
               std::to_string(b) + " " + std::to_string(c) + " " + std::to_string(d));
  UpdateSetting<Gradient> plain(size, a, b, c, d);
  plain.bucket.first_moment = nullptr;
  plain.bucket.second_moment = nullptr;
  check_sgd<SgdRule>(plain, SgdOptions{.learning_rate = 0.1, .weight_decay = 1e-2});
  UpdateSetting<Gradient> momentum(size, a, b, c, d);
  check_sgd<MomentumRule>(
      momentum,
      SgdOptions{.learning_rate = 0.1, .momentum = 0.9, .dampening = 0.25, .weight_decay = 1e-2});
  UpdateSetting<Gradient> nesterov(size, a, b, c, d);
  check_sgd<MomentumRule>(nesterov,
                          SgdOptions{.learning_rate = 0.1, .momentum = 0.9, .nesterov = true});
  UpdateSetting<Gradient> adam(size, a, b, c, d);
  check_adam(adam, AdamOptions{.weight_decay = 1e-2});
  UpdateSetting<Gradient> adamw(size, a, b, c, d);
  check_adam(adamw, AdamOptions{.weight_decay = 1e-2, .decoupled = true});
}

TEST(Update, EverySizeOffsetTypeAndRule) {
  for (const std::size_t size : {0u, 1u, 3u, 4u, 1021u, 4095u, 4096u, 4097u, 8209u}) {
    check_every_rule<float>(size, 0, 0, 0, 0);
    check_every_rule<float>(size, 1, 1, 1, 1);
    check_every_rule<float>(size, 3, 0, 1, 2);
    check_every_rule<Bf16>(size, 0, 0, 0, 0);
    check_every_rule<Bf16>(size, 2, 3, 2, 1);
    check_every_rule<Fp16>(size, 0, 2, 0, 0);
  }
}

TEST(Update, WithoutACopyNoneIsWritten) {
  UpdateSetting<float> setting(4097);
  setting.bucket.copy = nullptr;
  Guarded<Bf16> untouched(4097, 0);
  emulate<AdamRule, float>(setting.bucket, AdamOptions{}, setting.scaling, setting.state);
  for (std::size_t i = 0; i < setting.size; ++i) {
    ASSERT_EQ(setting.copy.data()[i].bits, untouched.data()[i].bits);
  }
}

// A skipped step leaves every bit alone, and the next one is as if it had not been.
TEST(Update, ANonFiniteGradientSkipsTheStep) {
  UpdateSetting<float> setting(5000, 1, 1, 1, 1);
  UpdateSetting<float> other(5000, 1, 1, 1, 1);
  setting.next_gradients(3);
  setting.gradients.data()[17] = std::numeric_limits<float>::quiet_NaN();
  const auto before = setting.weights.values();
  setting.non_finite = 1;
  emulate<AdamRule, float>(setting.bucket, AdamOptions{}, setting.scaling, setting.state);
  EXPECT_EQ(setting.weights.values(), before);
  EXPECT_EQ(setting.state.steps, 0);
  EXPECT_EQ(setting.state.skipped, 1);
  EXPECT_EQ(setting.state.beta1_power, 1);
  setting.non_finite = 0;
  setting.next_gradients(4);
  other.next_gradients(4);
  emulate<AdamRule, float>(setting.bucket, AdamOptions{}, setting.scaling, setting.state);
  emulate<AdamRule, float>(other.bucket, AdamOptions{}, other.scaling, other.state);
  EXPECT_EQ(setting.weights.values(), other.weights.values());
  EXPECT_EQ(setting.state.steps, 1);
}

TEST(Update, SplittingABucketChangesNoBit) {
  UpdateSetting<Fp16> whole(10000);
  UpdateSetting<Fp16> split(10000);
  whole.next_gradients(8);
  split.next_gradients(8);
  emulate<AdamRule, Fp16>(whole.bucket, AdamOptions{}, whole.scaling, whole.state);
  std::int64_t at = 0;
  for (const std::int64_t size : {1, 4097, 902, 5000}) {
    FlatBucket part = split.bucket;
    part.weights += at;
    part.gradients = static_cast<const Fp16*>(part.gradients) + at;
    part.first_moment += at;
    part.second_moment += at;
    part.copy += at;
    part.elements = size;
    UpdateState state;
    emulate<AdamRule, Fp16>(part, AdamOptions{}, split.scaling, state);
    at += size;
  }
  ASSERT_EQ(at, 10000);
  EXPECT_EQ(split.weights.values(), whole.weights.values());
  EXPECT_EQ(split.second.values(), whole.second.values());
}

// Against the formulas in double, and the products that stand for powers after many steps.
TEST(Update, AdamStaysNearItsFormulas) {
  UpdateSetting<float> setting(64);
  setting.bucket.copy = nullptr;
  const AdamOptions options{.learning_rate = 1e-2};
  std::vector<double> weight(64);
  std::vector<double> mean(64);
  std::vector<double> variance(64);
  for (std::size_t i = 0; i < 64; ++i) weight[i] = setting.weights[i];
  for (int step = 1; step <= 2000; ++step) {
    const auto gradients = setting.next_gradients(static_cast<unsigned>(step));
    emulate<AdamRule, float>(setting.bucket, options, setting.scaling, setting.state);
    for (std::size_t i = 0; i < 64; ++i) {
      const double g = gradients[i];
      mean[i] = 0.9 * mean[i] + 0.1 * g;
      variance[i] = 0.999 * variance[i] + 0.001 * g * g;
      weight[i] -= 1e-2 * (mean[i] / (1 - std::pow(0.9, step))) /
                   (std::sqrt(variance[i] / (1 - std::pow(0.999, step))) + 1e-8);
    }
  }
  EXPECT_NEAR(setting.state.beta2_power, std::pow(0.999, 2000), 1e-12);
  for (std::size_t i = 0; i < 64; ++i) EXPECT_NEAR(setting.weights[i], weight[i], 2e-5);
}

TEST(Update, BadArgumentsAreNamed) {
  UpdateSetting<float> good(4);
  const auto sgd = [&](FlatBucket bucket, SgdOptions options, GradientScaling scaling = {}) {
    return check_update(bucket, options, scaling, &good.state).text;
  };
  const auto adam = [&](FlatBucket bucket, AdamOptions options) {
    return check_update(bucket, options, {}, &good.state).text;
  };
  const auto has = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  EXPECT_EQ(sgd(good.bucket, {}), "");
  EXPECT_EQ(adam(good.bucket, {}), "");
  FlatBucket bad = good.bucket;
  bad.elements = -3;
  has(sgd(bad, {}), "-3 elements");
  bad = good.bucket;
  bad.weights = nullptr;
  has(sgd(bad, {}), "weights are a null pointer");
  bad = good.bucket;
  bad.first_moment = nullptr;
  EXPECT_EQ(sgd(bad, {}), "");
  has(sgd(bad, {.momentum = 0.9}), "momentum buffers are a null pointer");
  has(adam(bad, {}), "first moments are a null pointer");
  bad = good.bucket;
  bad.gradients = reinterpret_cast<const char*>(good.gradients.data()) + 1;
  has(adam(bad, {}), "not aligned to their element size");
  has(sgd(good.bucket, {.learning_rate = -1}), "learning rate");
  has(sgd(good.bucket, {.momentum = 0.9, .dampening = 0.1, .nesterov = true}), "Nesterov");
  has(sgd(good.bucket, {}, {.unscale = INFINITY}), "unscale is not finite");
  has(adam(good.bucket, {.beta1 = 1}), "beta");
  has(adam(good.bucket, {.beta2 = NAN}), "beta");
  has(adam(good.bucket, {.epsilon = -1}), "epsilon");
  has(check_update(good.bucket, SgdOptions{}, {}, nullptr).text, "state is a null pointer");
}

}  // namespace
}  // namespace syncline::kernels
