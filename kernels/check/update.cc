// Checks updates against the host reference: every rule, size and offset, three steps each. SGD and
// Adam's moments bit for bit; Adam's weights to a last bit, because the reference takes powers and
// the kernel multiplies.
#include "kernels/check/check.h"
#include "kernels/kernels.h"
#include "kernels/reference/optimizers.h"

namespace syncline::kernels {
namespace {

struct UpdateCase {
  std::size_t size;
  int weights, gradients, first, second;  // offsets
};

// Checks one rule. `launch` returns a Status for the bucket. `twin` steps its own vectors and
// returns the moments (empty if the rule has none).
template <typename Launch, typename Twin>
void check_rule(Checks& checks, const std::string& rule, const UpdateCase& shape, double slack,
                Launch launch, Twin twin) {
  auto weights = random_elements<float>(shape.size, 1);
  DeviceArray<float> device_weights(weights, shape.weights);
  DeviceArray<float> device_gradients(shape.size, shape.gradients);
  DeviceArray<float> first(std::vector<float>(shape.size), shape.first);
  DeviceArray<float> second(std::vector<float>(shape.size), shape.second);
  DeviceArray<UpdateState> state(std::vector<UpdateState>(1));
  const FlatBucket bucket{device_weights.data(), device_gradients.data(), first.data(),
                          second.data(), static_cast<std::int64_t>(shape.size)};
  std::size_t wrong = 0;
  for (unsigned step = 0; step < 3; ++step) {
    const auto gradients = random_elements<float>(shape.size, step + 2);
    device_gradients.put(gradients);
    require(launch(bucket, state.data()));
    wait_for_gpu();
    const auto now = device_weights.get();
    const auto moments = twin(gradients, weights);
    if (!moments[0].empty()) wrong += different(first.get(), moments[0]);
    if (!moments[1].empty()) wrong += different(second.get(), moments[1]);
    for (std::size_t i = 0; i < shape.size; ++i) {
      const double error = std::fabs(static_cast<double>(now[i]) - weights[i]);
      if (!(error <= slack * std::fabs(weights[i]) + (slack > 0 ? 1e-9 : 0))) ++wrong;
    }
    weights = now;  // the next step starts from equal weights
  }
  const bool intact =
      device_weights.intact() && device_gradients.intact() && first.intact() && second.intact();
  const UpdateState counts = state.get()[0];
  const bool counted = counts.steps == 3 && counts.ticket == 0;
  checks.line(rule + " " + std::to_string(shape.size) + " elements at offsets " +
                  std::to_string(shape.weights) + std::to_string(shape.gradients) +
                  std::to_string(shape.first) + std::to_string(shape.second),
              wrong == 0 && intact && counted,
              std::to_string(wrong) + " values differ" + (intact ? "" : ", a canary died") +
                  (counted ? "" : ", the state is wrong"));
}

using Moments = std::vector<std::vector<float>>;

void check_sgd(Checks& checks, const char* name, const SgdOptions& options,
               const UpdateCase& shape) {
  SgdMemory memory;
  check_rule(
      checks, name, shape, 0,
      [&](const FlatBucket& bucket, UpdateState* state) {
        return update_sgd(bucket, options, state, nullptr);
      },
      [&](const std::vector<float>& gradients, std::vector<float>& weights) {
        sgd_step(options, gradients, weights, memory);
        return Moments{memory.velocity, {}};
      });
}

void check_adam(Checks& checks, const UpdateCase& shape) {
  AdamMemory memory;
  check_rule(
      checks, "adam", shape, 3e-7,
      [&](const FlatBucket& bucket, UpdateState* state) {
        return update_adam(bucket, {}, state, nullptr);
      },
      [&](const std::vector<float>& gradients, std::vector<float>& weights) {
        adam_step({}, gradients, weights, memory);
        return Moments{memory.mean, memory.variance};
      });
}

}  // namespace

void check_update(Checks& checks) {
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{3}, std::size_t{4095}, std::size_t{4096},
        std::size_t{4097}, checks.size(kBusy, 9001), checks.size(5'000'003, 70'001)}) {
    for (const auto& shape :
         {UpdateCase{size, 0, 0, 0, 0}, {size, 1, 1, 1, 1}, {size, 3, 0, 1, 2}}) {
      check_sgd(checks, "sgd", {.learning_rate = 0.1}, shape);
      check_sgd(checks, "momentum", {.learning_rate = 0.1, .momentum = 0.9}, shape);
      check_adam(checks, shape);
    }
  }
}

}  // namespace syncline::kernels
