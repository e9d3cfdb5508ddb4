// The selection of Paddle's DGC (the collective library of PaddlePaddle Fleet, as of 2021): not the
// largest k, but what lies above a threshold that is sampled. On the host, the truth that the
// kernels are held against.
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
#pragma once

#include <cstdint>
#include <span>

#include "kernels/reference/dgc_step.h"

namespace syncline::kernels {

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

}  // namespace syncline::kernels
