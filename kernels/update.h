// Optimizers over a flat bucket in one pass: SGD, SGD with momentum, and Adam as torch.optim
// defines them, in fp32.
#pragma once

#include <cstdint>

#include "kernels/host_device.h"

namespace syncline::kernels {

// In device memory, one for every bucket: a copy of UpdateState{} before the first step.
struct UpdateState {
  std::int64_t steps = 0;
  double beta1_power = 1;  // beta1^steps
  double beta2_power = 1;
  std::uint32_t ticket = 0;  // the kernel's own: 0 between launches
  std::uint32_t unused = 0;
};

struct FlatBucket {
  float* weights = nullptr;
  const float* gradients = nullptr;
  // Zeros before the first step. SGD: the momentum buffer, null without momentum; Adam: m.
  float* first_moment = nullptr;
  float* second_moment = nullptr;  // Adam: v, zeros before the first step; SGD: null
  std::int64_t elements = 0;
};

struct SgdOptions {
  double learning_rate = 0;
  double momentum = 0;
};

struct AdamOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
};

Status update_sgd(const FlatBucket& bucket, const SgdOptions& options, UpdateState* state,
                  cudaStream_t stream);

Status update_adam(const FlatBucket& bucket, const AdamOptions& options, UpdateState* state,
                   cudaStream_t stream);

}  // namespace syncline::kernels
