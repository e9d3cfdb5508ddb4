// The step of Deep Gradient Compression (Lin et al., ICLR 2018) on one tensor, Paddle's sampled
// threshold and the sparse update on the host. Tests compare the kernels with it, to the bit. What
// accumulates before a step is core/compress/momentum_correction.h.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace syncline::kernels {

// What a rank sends of a tensor: rising indices and their values.
struct SparseMessage {
  std::vector<std::uint32_t> indices;
  std::vector<float> values;
};

// The min(kept, n) largest magnitudes of the residual, ties to the lower index, in index order.
// What is not finite is never among them.
std::vector<std::uint32_t> largest_magnitudes(std::span<const float> residual, std::int64_t kept);

// Takes these elements out of the residual, and clears their velocity (momentum factor masking).
SparseMessage take_out(std::vector<std::uint32_t> indices, std::span<float> velocity,
                       std::span<float> residual);

// The selection of Paddle's DGC (the collective library of PaddlePaddle Fleet, as of 2021): not the
// largest k, but what lies above a threshold that is sampled.
//
//   windows    w = min(16, int(prop / 2)) contiguous pieces of int(n / prop) elements, one every
//              n / w, where prop = k / s and s = min(32, k / 2)
//   threshold  the mean of the windows' s-th largest magnitudes
//   sent       the tensor is dealt out to t threads, element i to thread i mod t. A thread's places
//              in the message begin after as many as the threads before it have magnitudes of at
//              least the threshold; into them go its elements above the threshold (not those equal
//              to it), as long as the place is one of k
//
// So what is too much stays in the residual, the position deciding; what is too little leaves pads
// (index 0xffffffff, value -1); and where all magnitudes are equal nothing is sent. Divisions are
// fp32 as in the library; the mean is the fp32 sum of the windows in order over their number.
constexpr std::int64_t kSampledMinElements = 16384;  // the library refuses less

struct SampleShape {
  std::int64_t rank = 0;    // s
  std::int64_t window = 0;  // elements
  std::int64_t windows = 0;
  std::int64_t stride = 0;   // from one window to the next
  std::int64_t threads = 0;  // of the encoding
};

// For n >= kSampledMinElements and 2 <= kept <= n (less than 2 divides by zero in the library).
SampleShape sample_shape(std::int64_t elements, std::int64_t kept);

float sampled_threshold(std::span<const float> residual, std::int64_t kept);

// The message, `kept` places with pads; what is sent becomes 0 in residual and velocity.
SparseMessage take_above(float threshold, std::int64_t kept, std::span<float> velocity,
                         std::span<float> residual);

// The sparse update: every rank's pairs into the weights, in the order of the ranks,
// w_i = w_i - rate v for each pair, rank after rank; product and difference rounded by themselves.
// False, and no weight changes, where an index is not less than the number of weights, indices do
// not rise though they are to, or a value is not finite. Pads (index 0xffffffff) are passed over.
bool apply_messages(std::span<const SparseMessage> ranks, float rate, std::span<float> weights,
                    bool rising = true);

}  // namespace syncline::kernels
