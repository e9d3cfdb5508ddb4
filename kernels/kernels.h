// All GPU work except matrix products: packing, blocks, factors, element-wise work, updates, and
// the timer. Each function launches on the stream given.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/host_device.h"

namespace syncline::kernels {

// One of many tensors that a launch copies: gradients into a bucket (pack), or a bucket's slices
// back (the same with `from` and `to` exchanged), cast between fp32, bf16 and fp16.
struct PackedTensor {
  const void* from = nullptr;
  void* to = nullptr;
  std::int64_t elements = 0;
};

// Copies all tensors, one launch per 1000. Requires addresses at multiples of their elements' size,
// no cast in place, and at least one type that is fp32.
Status pack(std::span<const PackedTensor> tensors, ElementType from, ElementType to,
            cudaStream_t stream);

// Divides every number by the same divisor, for a mean after a sum. Rounds as IEEE 754 divides, so
// that a CPU gets equal bits. 8 bytes per element, read and written.
Status divide(float* values, std::int64_t count, float divisor, cudaStream_t stream);

// Orthogonalisation of a low-rank factor: its columns become orthogonal and of length 1, from the
// first on (Gram and Schmidt, like core/compress/power_sgd.cc). A column that depends linearly on
// those before it becomes zeros.

// A matrix, row after row, `rank` numbers each.
struct Factor {
  float* numbers = nullptr;
  std::int64_t rows = 0;
  std::int32_t rank = 0;
};

// Orthogonalises each factor in place, one block of threads per factor.
Status orthogonalise(const std::vector<Factor>& factors, cudaStream_t stream);

// Gradients in blocks of 128 numbers of 4 or 8 bits with one scale, bits equal to
// core/compress/blocks.cc: encoded, decoded, and summed in fp32 in rank order, rounded once. A
// block is its scale, an fp32, and its codes, in words of 32 bits.

enum class BlockFormat { kInt8, kInt4, kFp8, kFp8E5M2 };

constexpr std::int64_t kBlockElements = 128;

inline std::int64_t block_bytes(BlockFormat format) {
  return 4 + kBlockElements / (format == BlockFormat::kInt4 ? 2 : 1);
}

// Encodes `values`, at a multiple of 16 bytes, to `blocks`, at one of 4. Pads with zeros.
Status blocks_encode(BlockFormat format, const float* values, std::int64_t elements, void* blocks,
                     cudaStream_t stream);
Status blocks_decode(BlockFormat format, const void* blocks, float* values, std::int64_t elements,
                     cudaStream_t stream);

// Other ranks' blocks, one part after the other, `stride` bytes apart.
struct BlockParts {
  const void* first = nullptr;
  std::int64_t stride = 0;
  int count = 0;
};
// Adds `others` to `own`; `blocks` is the number in each part.
Status blocks_sum(BlockFormat format, void* own, const BlockParts& others, std::int64_t blocks,
                  cudaStream_t stream);

// A timer on a stream: one thread reads the GPU's clock until time is up. It replaces computation
// of known duration and takes neither memory traffic nor a notable share of a multiprocessor from
// concurrent work.

// The timer's state in device memory, one per stream; zeroed before its first use.
struct TimerState {
  std::uint64_t begin;  // begin of the current span
  std::uint64_t end;    // the intended end of the last span
};

constexpr std::uint64_t kLaunchGap = 20000;  // nanoseconds

// Begins a span; other work may follow on the stream before it ends. `follows`: the stream has had
// no other work and no wait since the timer's last span.
Status timer_begin(TimerState* timer, bool follows, cudaStream_t stream);
// Ends the span once it has lasted `nanoseconds`, including the work since timer_begin().
Status timer_end(TimerState* timer, std::int64_t nanoseconds, cudaStream_t stream);

// Addition and activation in one pass, forward and backward: y = f(a + b). All arrays have the same
// type, fp32, bf16 or fp16; arithmetic is in fp32. Bytes per element, read and written, with 2-byte
// (fp32) elements: forward 6 (12), backward 8 (16), each 2 (4) less without b. An addition and an
// activation as two kernels move 10. At an H200's 4.8 TB/s (data sheet) 205 M 2-byte elements take
// at least 256 us forward.

// Relu keeps a NaN, as torch's does. Its slope is 0 at 0.
enum class Activation { kIdentity, kRelu, kGelu };

struct AddActivation {
  ElementType type = ElementType::kFp32;
  Activation activation = Activation::kIdentity;
  const void* a = nullptr;
  const void* b = nullptr;  // null: y = f(a)
  std::int64_t elements = 0;
};

// Computes y = f(a + b). y may be a or b.
Status add_activation(const AddActivation& inputs, void* y, cudaStream_t stream);

// Computes dz = dy * f'(a + b), the gradient of both a and b, from the inputs only. dz may be any
// of the arrays. For relu, `a` may be y and `b` null: y is positive exactly if a + b was.
Status add_activation_gradient(const AddActivation& inputs, const void* dy, void* dz,
                               cudaStream_t stream);

// Optimizers over a flat bucket in one pass: SGD, SGD with momentum, and Adam as torch.optim
// defines them, in fp32.

// A bucket's state in device memory: a copy of UpdateState{} before the first step.
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
