// Recursive halving and doubling: as few bytes as the ring in 2 log2 N steps instead of 2(N-1),
// but with partners far away, which share links in a network that is thinner at the top. Use it
// for middle-sized payloads on a power of two of well connected ranks.
#pragma once

#include "core/collective/algorithm.h"

namespace syncline::collective {

// Fits all_reduce on any number of ranks; reduce_scatter and all_gather on powers of two.
Algorithm halving_doubling_algorithm();

}  // namespace syncline::collective
