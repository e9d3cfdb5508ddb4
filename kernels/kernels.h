// What runs on a GPU apart from matrix products: packing, blocks, factors, element-wise work,
// updates, and the timer. Each function launches on the stream that it is given.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/host_device.h"

namespace syncline::kernels {

// Many tensors copied in one launch: gradients into a bucket (pack) or a bucket's slices back
// (unpack: the same with `from` and `to` exchanged), on the way cast between fp32, bf16 and fp16.
struct PackedTensor {
  const void* from = nullptr;
  void* to = nullptr;
  std::int64_t elements = 0;
};

// One launch for every 1000 tensors. Addresses are at multiples of their elements' size; nothing is
// cast in place. One of both types is fp32.
Status pack(std::span<const PackedTensor> tensors, ElementType from, ElementType to,
            cudaStream_t stream);

// A mean after a sum: every number divided by the same one, rounded as IEEE 754 divides, so that it
// is what a CPU would have got. 8 bytes an element, read and written.
Status divide(float* values, std::int64_t count, float divisor, cudaStream_t stream);

// Columns made orthogonal and of length 1, from the first on (Gram and Schmidt, as
// core/compress/power_sgd.cc has it): a factor of low rank. A column that the ones before it span
// becomes zeros.

// One row after the other, `rank` numbers each.
struct Factor {
  float* numbers = nullptr;
  std::int64_t rows = 0;
  std::int32_t rank = 0;
};

// Returns a block of threads for each.
Status orthogonalise(const std::vector<Factor>& factors, cudaStream_t stream);

// Gradients in blocks of 128 numbers of 4 or 8 bits with a scale each, to the bit as
// core/compress/blocks.cc has them: encoded, decoded, and summed rank after rank in fp32, rounded
// once. A block is its scale, an fp32, and its codes, in words of 32 bits.

enum class BlockFormat { kInt8, kInt4, kFp8, kFp8E5M2 };

constexpr std::int64_t kBlockElements = 128;

inline std::int64_t block_bytes(BlockFormat format) {
  return 4 + kBlockElements / (format == BlockFormat::kInt4 ? 2 : 1);
}

// `values` at multiples of 16 bytes, `blocks` of 4. Behind the last element a block holds zeros.
Status blocks_encode(BlockFormat format, const float* values, std::int64_t elements, void* blocks,
                     cudaStream_t stream);
Status blocks_decode(BlockFormat format, const void* blocks, float* values, std::int64_t elements,
                     cudaStream_t stream);

// What other ranks have sent, one after the other and `stride` bytes apart.
struct BlockParts {
  const void* first = nullptr;
  std::int64_t stride = 0;
  int count = 0;
};
// Adds them to `own`, so many blocks of each.
Status blocks_sum(BlockFormat format, void* own, const BlockParts& others, std::int64_t blocks,
                  cudaStream_t stream);

// Time passing on a stream: one thread that looks at the GPU's clock until it is late enough. It
// stands in for computation whose duration is known and takes nothing from what runs beside it, no
// multiprocessor worth mentioning and no memory traffic.

// In device memory, one for each stream; zeroed before its first use.
struct TimerState {
  std::uint64_t begin;  // of the span under way
  std::uint64_t end;    // that was meant for the last one
};

constexpr std::uint64_t kLaunchGap = 20000;  // nanoseconds

// A span begins; other work may follow on the stream before it ends. `follows`: nothing has been
// done on the stream, and nothing waited for, since the timer's last span.
Status timer_begin(TimerState* timer, bool follows, cudaStream_t stream);
// Lets the span that began last take `nanoseconds` in all. Work between the two counts in.
Status timer_end(TimerState* timer, std::int64_t nanoseconds, cudaStream_t stream);

// Addition and activation in one pass, forward and backward: y = f(a + b). All arrays have the same
// type, fp32, bf16 or fp16; arithmetic is in fp32.
// Bytes an element, read and written, with 2-byte (fp32) elements: forward 6 (12), backward 8 (16),
// each 2 (4) less without b. An addition and an activation as two kernels move 10. At an H200's
// 4.8 TB/s (data sheet) 205 M 2-byte elements take at least 256 us forward.

// Relu keeps a NaN, as torch's does. Its slope is 0 at 0.
enum class Activation { kIdentity, kRelu, kGelu };

struct AddActivation {
  ElementType type = ElementType::kFp32;
  Activation activation = Activation::kIdentity;
  const void* a = nullptr;
  const void* b = nullptr;  // null: y = f(a)
  std::int64_t elements = 0;
};

// y may be a or b.
Status add_activation(const AddActivation& inputs, void* y, cudaStream_t stream);

// dz = dy * f'(a + b): the gradient of a, and of b too. Nothing but the inputs was kept; dz may be
// any of the arrays. For relu `a` may be y and `b` null: y is positive where a + b was.
Status add_activation_gradient(const AddActivation& inputs, const void* dy, void* dz,
                               cudaStream_t stream);

// Optimizers over a flat bucket in one pass: SGD, SGD with momentum, and Adam as torch.optim
// defines them, in fp32.

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
