// All to one: every member sends its whole payload to member 0, which sums and sends the sum back,
// like workers and one parameter server. It takes the fewest steps of all and makes member 0's
// port the bottleneck: N-1 payloads each way. Use it for tiny payloads, and as the baseline that
// the other algorithms improve on.
#pragma once

#include "core/collective/algorithm.h"

namespace syncline::collective {

// Fits all_reduce, reduce and broadcast.
Algorithm to_one_algorithm();

}  // namespace syncline::collective
