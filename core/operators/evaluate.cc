#include "core/operators/evaluate.h"

#include <algorithm>
#include <cassert>

namespace syncline::operators {

namespace {

constexpr int kAmpere = 80, kAda = 89, kHopper = 90, kBlackwell = 100;

// Returns the rate of convolutions. cuDNN has algorithms with fewer products (Winograd's) for fp32.
// For TF32 it is a share fitted to ResNet-50 and VGG-16 on an H200 (scenarios/published/gpu).
double convolution_rate(const Operator& op, const Device& device) {
  constexpr double kWinograd = 1.3, kTf32 = 0.6;
  const double rate = device.product_flops(op.dtype);
  if (op.dtype != DType::kFp32) return rate;
  if (!rounds(op, device.compute_capability)) return kWinograd * rate;
  return std::max(kTf32 * device.half_flops / 2, rate);
}

// Returns FLOP/s of its products, by kind; tests/hardware/reached_test.cc finds attention's values
// again on published runs. Attention's kernels were written for Ampere and use less of a Hopper;
// those for Blackwell keep up with products (scenarios/published/whole_jobs, long samples). FP8 has
// the same share of its rate as half precision: Llama 3.1 8B and Nemotron-4 15B there need 1.17 and
// 1.12 times that on H100.
double rate_of_products(const Operator& op, const Device& device) {
  constexpr double kAttention = 0.68, kOnHopper = 0.45, kFp8 = 2;
  const double rate = device.product_flops(op.dtype);
  if (op.kind.starts_with("conv2d")) return convolution_rate(op, device);
  const int capability = device.compute_capability;
  if (rounds(op, capability)) {
    return op.dtype == DType::kFp32 ? std::max(device.half_flops / 2, rate) : kFp8 * rate;
  }
  if (!op.kind.starts_with("flash_attn")) return aligned_share(op, device) * rate;
  return rate * (capability < kHopper ? kAttention : capability < kBlackwell ? kOnHopper : 1);
}

}  // namespace

bool rounds(const Operator& op, int compute_capability) {
  if (op.dtype != DType::kFp32) return op.rounded && compute_capability >= kAda;
  return (op.rounded || op.kind.starts_with("conv2d")) && compute_capability >= kAmpere;
}

// Returns the share for unaligned rows. Rows that do not begin at multiples of 16 bytes are read by
// kernels limited to Turing's instructions: 123 TFLOP/s on an H200 with an odd number of columns,
// like GPT-2's 50,257 words, and twice that with an even one (scenarios/published/gpu). On an A100
// these kernels lose less: derived from 50,304 words making nanoGPT's GPT-2 a quarter faster there,
// which is recalled and not measured here.
double aligned_share(const Operator& op, const Device& device) {
  constexpr double kOddOnAmpere = 0.45, kOdd = 0.19;
  constexpr std::int64_t kWhole = 8;
  const bool half = size_of(op.dtype) == 2;
  if (!half || op.columns % kWhole == 0 || device.compute_capability < kAmpere) return 1;
  const double odd = device.compute_capability < kHopper ? kOddOnAmpere : kOdd;
  return op.columns % 2 == 0 ? 2 * odd : odd;
}

Seconds kernel_time(const OperatorList& list, const Operator& op, const Device& device) {
  const Seconds moved = traffic(list, op) / device.memory;
  const Seconds others = op.flops / device.flops;
  if (op.matrix_flops == 0) return std::max(others, moved);
  return op.matrix_flops / rate_of_products(op, device) + others + moved;
}

StepTimes evaluate_operators(const OperatorList& list, const Device& device) {
  assert(device.flops > 0 && device.memory > 0 && "a device without rates predicts no operators");
  StepTimes times;
  times.backward.resize(list.gradients.size());

  // Index of the gradient that a value is, for the moment when it is written.
  std::vector<int> gradient_of(list.values.size(), -1);
  for (std::size_t i = 0; i < list.gradients.size(); ++i) {
    if (list.gradients[i] >= 0) {
      gradient_of[static_cast<std::size_t>(list.gradients[i])] = static_cast<int>(i);
    }
  }
  std::vector<Seconds> ready(list.gradients.size(), 0);

  Seconds issued = 0, end = 0, forward_end = 0, backward_end = 0;
  for (const auto& op : list.operators) {
    const int kernels = std::max(1, op.kernels);
    const Seconds each = kernel_time(list, op, device) / kernels;
    for (int k = 0; k < kernels; ++k) {
      issued += device.launch;
      const Seconds free = end > 0 ? end + device.kernel_gap : 0;
      end = std::max(issued, free) + each;
    }
    if (op.part == StepPart::kForward) forward_end = end;
    if (op.part != StepPart::kUpdate) backward_end = end;
    for (const auto& output : op.outputs) {
      const int gradient = gradient_of[static_cast<std::size_t>(output.value)];
      if (gradient >= 0) ready[static_cast<std::size_t>(gradient)] = end;
    }
  }

  times.forward = forward_end;
  Seconds before = forward_end;
  for (std::size_t i = 0; i < ready.size(); ++i) {
    const Seconds at = i + 1 == ready.size() ? backward_end : std::max(before, ready[i]);
    times.backward[i] = at - before;
    before = at;
  }
  times.update = end - backward_end;
  return times;
}

}  // namespace syncline::operators
