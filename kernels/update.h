// Optimizers over a flat bucket in one pass: SGD, SGD with momentum (and Nesterov's), Adam and
// AdamW as torch.optim defines them, with what usually surrounds them fused in: unscaling, the clip
// coefficient, the skipped step, and a bf16 copy of the new weights.
#pragma once

#include <cstdint>

#include "kernels/host_device.h"

namespace syncline::kernels {

// In device memory, one for every bucket: a copy of UpdateState{} before the first step. Steps that
// were skipped do not count, neither for Adam's bias correction nor for SGD's first step.
struct UpdateState {
  std::int64_t steps = 0;
  std::int64_t skipped = 0;
  double beta1_power = 1;  // beta1^steps
  double beta2_power = 1;
  std::uint32_t ticket = 0;  // the kernel's own: 0 between launches
  std::uint32_t unused = 0;
};

struct FlatBucket {
  float* weights = nullptr;
  const void* gradients = nullptr;
  ElementType gradient_type = ElementType::kFp32;
  // Zeros before the first step. SGD: the momentum buffer, null without momentum; Adam: m.
  float* first_moment = nullptr;
  float* second_moment = nullptr;  // Adam: v, zeros before the first step; SGD: null
  Bf16* copy = nullptr;            // the new weights, rounded; null: no copy
  std::int64_t elements = 0;
};

// gradient * (unscale * *clip_coefficient), in fp32. Both pointers are to device memory, usually
// into a GradientMeasure (pack.h), or null.
struct GradientScaling {
  float unscale = 1;  // 1 / loss scale, or 1 / ranks
  const float* clip_coefficient = nullptr;
  const std::int32_t* non_finite = nullptr;  // not 0: nothing but `skipped` changes
};

struct SgdOptions {
  double learning_rate = 0;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;  // added to the gradient
  bool nesterov = false;
};

struct AdamOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  bool decoupled = false;  // AdamW: the weights decay themselves, not through the gradient
};

Status update_sgd(const FlatBucket& bucket, const SgdOptions& options,
                  const GradientScaling& scaling, UpdateState* state, cudaStream_t stream);

Status update_adam(const FlatBucket& bucket, const AdamOptions& options,
                   const GradientScaling& scaling, UpdateState* state, cudaStream_t stream);

}  // namespace syncline::kernels
