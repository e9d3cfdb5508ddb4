// Fusion rules by their parts: what the search tries.
#pragma once

#include <vector>

#include "core/scenario/strategy.h"

namespace syncline {

// Fusion by size with this way to close.
Fusion by_size(Bytes size, Fusion::Close close, Bytes first_size = 0);

// Explicit buckets: the last gradient of each.
Fusion by_ends(const std::vector<std::size_t>& ends);

<<<<<<< HEAD
=======
// MG-WFBP (Shi et al., INFOCOM 2019), as its authors' code decides: the next gradient joins the
// bucket at hand if it is ready before that bucket's exchange would end, and either the exchange
// would begin after it or waiting for it costs less than one latency. The waits add up, so it is
// not optimal (up to 1.8 times the optimum). Returns the last gradient of each bucket.
std::vector<std::size_t> mg_wfbp(const FusionProblem& problem, const AffineCost& cost);

>>>>>>> bodies
}  // namespace syncline
