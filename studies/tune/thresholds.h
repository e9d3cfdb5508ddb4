// Fusion thresholds that matter: a rule by size or by count makes the same buckets for whole ranges
// of its limit, so a search over the few values where the partition changes is exact.
#pragma once

#include <vector>

#include "core/job.h"
#include "core/strategy.h"

namespace syncline::tune {

// Up to so many gradients a search is exact: it tries every size at which buckets change, and
// costs every bucket by itself. Both grow as the square of the gradients. Beyond, sizes at least 1
// % (and counts at least 1 %) apart are tried, and what buckets cost is known for sizes 0.8 %
// apart.
inline constexpr std::size_t kMostExact = 600;

// The smallest whole number of bytes that makes each partition which `fusion` (rule size; its
// `size` is ignored, `first_size`, `count`, `close` and `by_layer` are kept) makes of `candidates`,
// rising from 0 on. Each comes from the partition before: the limit at which the first of its
// decisions turns. Of more than kMostExact candidates, those a percent apart.
std::vector<Bytes> size_thresholds(const std::vector<const Tensor*>& tensors,
                                   const std::vector<int>& candidates, Fusion fusion);

// The same for the number of tensors (rule count): 1, 2, ... as far as the partition changes.
std::vector<std::int64_t> count_thresholds(const std::vector<const Tensor*>& tensors,
                                           const std::vector<int>& candidates, Fusion fusion);

// The roundest number of bytes from `low` to `high`: the multiple of the largest power of two, so
// that it is short in KiB or MiB. 0 where `low` is.
Bytes roundest_size(Bytes low, Bytes high);

// The sizes that a person would write instead of this one, the first ones first: 1, 2, 4, 8, 16,
// 25, 32, 50, 64, 100, 128, ... KiB, MiB or GiB, the nearest ones first, then whole MiB (KiB below
// 1 MiB). None where the size is such a one.
std::vector<Bytes> rounder_sizes(Bytes size);

// Places in a list of `count`, the first and the last among them: `most` of them, evenly spread, or
// all where there are no more.
std::vector<std::size_t> spread_over(std::size_t count, std::size_t most);

// What a size that a person would write may cost of a step.
inline constexpr double kRoundness = 5e-3;

// Fusion rules by their parts: what the search tries.

// Fusion by size with this way to close.
Fusion by_size(Bytes size, Fusion::Close close, Bytes first_size = 0);

// Explicit buckets: the last gradient of each.
Fusion by_ends(const std::vector<std::size_t>& ends);

}  // namespace syncline::tune
