// The sparse update of DGC on the host: every rank's pairs into the weights, in the order of the
// ranks. The truth that the kernel is held against, to the bit.
#pragma once

#include <span>

#include "kernels/reference/dgc_step.h"

namespace syncline::kernels {

// w_i = w_i - rate v for each pair, rank after rank; product and difference rounded by themselves.
// False, and no weight changes, where an index is not less than the number of weights, indices do
// not rise though they are to, or a value is not finite. Pads (index 0xffffffff) are passed over.
bool apply_messages(std::span<const SparseMessage> ranks, float rate, std::span<float> weights,
                    bool rising = true);

}  // namespace syncline::kernels
