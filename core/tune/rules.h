// The fusion rules of today, for comparison with the optimum. What frameworks do by a limit is a
// Fusion (core/plan/fusion splits by it); what schedulers derive from measured times is a function.
#pragma once

#include <string_view>
#include <vector>

#include "core/scenario/strategy.h"
#include "core/tune/optimum.h"

namespace syncline {

struct NamedRule {
  std::string_view name;
  std::string_view about;
  Fusion fusion;
};

// Each gradient alone; one bucket; DDP (1 MiB, then 25 MiB, closes after reaching them); Horovod
// (64 MiB, closes before exceeding it); Paddle (16 MiB or more than 50 tensors; and 32 MiB), one
// gradient after the other.
const std::vector<NamedRule>& common_rules();

// Fusion by size with this way to close.
Fusion by_size(Bytes size, Fusion::Close close, Bytes first_size = 0);

// Explicit buckets: the last gradient of each.
Fusion by_ends(const std::vector<std::size_t>& ends);

// MG-WFBP (Shi et al., INFOCOM 2019), as its authors' code decides: the next gradient joins the
// bucket at hand if it is ready before that bucket's exchange would end, and either the exchange
// would begin after it or waiting for it costs less than one latency. The waits add up, so it is
// not optimal (up to 1.8 times the optimum). Returns the last gradient of each bucket.
std::vector<std::size_t> mg_wfbp(const FusionProblem& problem, const AffineCost& cost);

}  // namespace syncline
