// Fusion rules by their parts: what the search tries.
#pragma once

#include <vector>

#include "core/scenario/strategy.h"

namespace syncline::tune {

// Fusion by size with this way to close.
Fusion by_size(Bytes size, Fusion::Close close, Bytes first_size = 0);

// Explicit buckets: the last gradient of each.
Fusion by_ends(const std::vector<std::size_t>& ends);

}  // namespace syncline::tune
