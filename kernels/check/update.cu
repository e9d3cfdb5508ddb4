// Updates against the host twins: every rule, gradient type, size and offset, three
// steps each, and the step that is skipped. SGD and the moments of Adam bit for bit; Adam's weights
// to a last bit, because the twin takes powers where the kernel multiplies.

#include "kernels/check/check.h"
#include "kernels/reference/optimizers.h"
#include "kernels/update.h"

namespace syncline::kernels {
namespace {

constexpr float kUnscale = 0.5f;
constexpr float kClip = 0.25f;

struct UpdateCase {
  std::size_t size;
  int weights, gradients, first, second;  // offsets
};

// Launch returns a Status for the bucket and scaling; twin steps the vectors that it owns and
// returns the moments (empty where the rule has none).
template <typename Gradient, typename Launch, typename Twin>
void check_rule(Checks& checks, const std::string& rule, const UpdateCase& shape, double slack,
                Launch launch, Twin twin) {
  auto weights = random_elements<float>(shape.size, 1);
  DeviceArray<float> device_weights(weights, shape.weights);
  DeviceArray<Gradient> device_gradients(shape.size, shape.gradients);
  DeviceArray<float> first(std::vector<float>(shape.size), shape.first);
  DeviceArray<float> second(std::vector<float>(shape.size), shape.second);
  DeviceArray<Bf16> copy(shape.size, shape.gradients);
  DeviceArray<UpdateState> state(std::vector<UpdateState>(1));
  DeviceArray<float> clip(std::vector<float>{kClip});
  DeviceArray<std::int32_t> non_finite(1);
  const FlatBucket bucket{device_weights.data(),
                          device_gradients.data(),
                          kElementType<Gradient>,
                          first.data(),
                          second.data(),
                          copy.data(),
                          static_cast<std::int64_t>(shape.size)};
  const GradientScaling scaling{kUnscale, clip.data(), non_finite.data()};
  std::size_t wrong = 0;
  for (unsigned step = 0; step < 4; ++step) {
    const auto raw = random_elements<Gradient>(shape.size, step + 2);
    device_gradients.put(raw);
    const bool skip = step == 1;
    non_finite.put({skip ? 1 : 0});
    require(launch(bucket, scaling, state.data()));
    wait_for_gpu();
    const auto now = device_weights.get();
    if (skip) {
      wrong += different(now, weights);
      continue;
    }
    auto gradients = floats_of(raw);
    for (auto& gradient : gradients) gradient *= kUnscale * kClip;
    const auto moments = twin(gradients, weights);
    if (!moments[0].empty()) wrong += different(first.get(), moments[0]);
    if (!moments[1].empty()) wrong += different(second.get(), moments[1]);
    for (std::size_t i = 0; i < shape.size; ++i) {
      const double error = std::fabs(static_cast<double>(now[i]) - weights[i]);
      if (!(error <= slack * std::fabs(weights[i]) + (slack > 0 ? 1e-9 : 0))) ++wrong;
    }
    weights = now;  // the next step starts from the same place
    std::vector<Bf16> rounded;
    for (const float weight : now) rounded.push_back(from_float<Bf16>(weight));
    wrong += different(copy.get(), rounded);
  }
  const bool intact = device_weights.intact() && device_gradients.intact() && first.intact() &&
                      second.intact() && copy.intact();
  const UpdateState counts = state.get()[0];
  const bool counted = counts.steps == 3 && counts.skipped == 1 && counts.ticket == 0;
  checks.line(rule + " " + name_of(kElementType<Gradient>) + " " + std::to_string(shape.size) +
                  " elements at offsets " + std::to_string(shape.weights) +
                  std::to_string(shape.gradients) + std::to_string(shape.first) +
                  std::to_string(shape.second),
              wrong == 0 && intact && counted,
              std::to_string(wrong) + " values differ" + (intact ? "" : ", a canary died") +
                  (counted ? "" : ", the state is wrong"));
}

using Moments = std::vector<std::vector<float>>;

template <typename Gradient>
void check_sgd(Checks& checks, const char* name, const SgdOptions& options,
               const UpdateCase& shape) {
  SgdMemory memory;
  check_rule<Gradient>(
      checks, name, shape, 0,
      [&](const FlatBucket& bucket, const GradientScaling& scaling, UpdateState* state) {
        return update_sgd(bucket, options, scaling, state, nullptr);
      },
      [&](const std::vector<float>& gradients, std::vector<float>& weights) {
        sgd_step(options, gradients, weights, memory);
        return Moments{memory.velocity, {}};
      });
}

template <typename Gradient>
void check_adam(Checks& checks, const char* name, const AdamOptions& options,
                const UpdateCase& shape) {
  AdamMemory memory;
  check_rule<Gradient>(
      checks, name, shape, 3e-7,
      [&](const FlatBucket& bucket, const GradientScaling& scaling, UpdateState* state) {
        return update_adam(bucket, options, scaling, state, nullptr);
      },
      [&](const std::vector<float>& gradients, std::vector<float>& weights) {
        adam_step(options, gradients, weights, memory);
        return Moments{memory.mean, memory.variance};
      });
}

template <typename Gradient>
void check_type(Checks& checks) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{3}, std::size_t{4095},
                                 std::size_t{4096}, std::size_t{4097}, checks.size(kBusy, 9001)}) {
    for (const auto& shape :
         {UpdateCase{size, 0, 0, 0, 0}, {size, 1, 1, 1, 1}, {size, 3, 0, 1, 2}}) {
      check_sgd<Gradient>(checks, "sgd", {.learning_rate = 0.1, .weight_decay = 0.01}, shape);
      check_sgd<Gradient>(
          checks, "momentum",
          {.learning_rate = 0.1, .momentum = 0.9, .dampening = 0.25, .weight_decay = 0.01}, shape);
      check_sgd<Gradient>(checks, "nesterov",
                          {.learning_rate = 0.1, .momentum = 0.9, .nesterov = true}, shape);
      check_adam<Gradient>(checks, "adam", {.weight_decay = 0.01}, shape);
      check_adam<Gradient>(checks, "adamw", {.weight_decay = 0.01, .decoupled = true}, shape);
    }
  }
}

}  // namespace

void check_update(Checks& checks) {
  check_type<float>(checks);
  check_type<Bf16>(checks);
  check_type<Fp16>(checks);
  check_adam<Bf16>(checks, "adamw", {.decoupled = true},
                   {checks.size(5'000'003, 70'001), 0, 0, 0, 0});
}

}  // namespace syncline::kernels
