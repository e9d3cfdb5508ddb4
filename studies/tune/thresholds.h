// Fusion thresholds that matter. A rule by size or count makes the same buckets for whole ranges of
// its limit; a search over the values that change the partition is exact.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/job.h"
#include "core/strategy.h"

namespace syncline::tune {

// Largest number of gradients of an exact search, which tries every size that changes buckets and
// costs every bucket. Both grow as the square of the gradients. Beyond, sizes and counts are at
// least 1 % apart, and costs of buckets are known for sizes 0.8 % apart.
inline constexpr std::size_t kMaxExact = 600;

// Per group, index of the unit after its end, rising. A search stores millions.
using GroupEnds = std::vector<std::uint32_t>;

// The units that rules by size and by count join into groups: tensors, or their layers. Finds the
// groups of plan::fuse without a list of tensors for each.
class FusionUnits {
 public:
  // Collects the units of `fusion`; its size and count do not matter.
  FusionUnits(const std::vector<const Tensor*>& tensors, const std::vector<int>& candidates,
              const Fusion& fusion);

  // Returns the groups' ends. Requires rule size or count, and the same units as at construction.
  GroupEnds ends(const Fusion& fusion) const;
  // Returns the bytes of the units [first, end), without padding.
  Bytes bytes(std::size_t first, std::size_t end) const { return bytes_[end] - bytes_[first]; }

 private:
  std::vector<Bytes> bytes_;           // of the units before each, and of all
  std::vector<std::int64_t> tensors_;  // likewise
};

// The gradients that a job sums apart from each other, each list in units of its own.
class SeparateUnits {
 public:
  explicit SeparateUnits(const Workload& workload);

  // Returns the ends of each list's groups: strategies that differ in their rule by size or count
  // alone have the same plan if these are the same. nullopt: more than the groups decides a plan.
  std::optional<GroupEnds> ends(const Strategy& strategy) const;

 private:
  bool others_ = false;  // some gradients
  std::vector<FusionUnits> lists_;
};

// Returns, rising from 0, the least size in bytes for each partition of `candidates` by `fusion`
// (rule size; its `size` is ignored, `first_size`, `count`, `close` and `by_layer` are kept). Each
// follows from the last partition: the limit that first changes one of its decisions. Of more than
// kMaxExact candidates, returns sizes a percent apart.
std::vector<Bytes> size_thresholds(const std::vector<const Tensor*>& tensors,
                                   const std::vector<int>& candidates, Fusion fusion);

// Returns the numbers of tensors (rule count) 1, 2, ... up to the last that changes the partition.
std::vector<std::int64_t> count_thresholds(const std::vector<const Tensor*>& tensors,
                                           const std::vector<int>& candidates, Fusion fusion);

// Returns the roundest number of bytes from `low` to `high`: the multiple of the largest power of
// two, so that it is short in KiB or MiB. 0 if `low` is 0.
Bytes roundest_size(Bytes low, Bytes high);

// Returns rounder sizes to write in place of this one, the best first: 1, 2, 4, 8, 16, 25, 32, 50,
// 64, 100, 128, ... KiB, MiB or GiB, by distance, then whole MiB (KiB below 1 MiB). Empty if the
// size is round.
std::vector<Bytes> rounder_sizes(Bytes size);

// Returns `most` indices of a list of `count`, evenly spread, including the first and the last; all
// if `count` is at most `most`.
std::vector<std::size_t> spread_indices(std::size_t count, std::size_t most);

// Largest cost of a rounder size, as a share of a step.
inline constexpr double kRoundness = 5e-3;

// Fusion rules by their parts, for the search.

// Returns fusion by size with this way to close.
Fusion by_size(Bytes size, Fusion::Close close, Bytes first_size = 0);

// Returns explicit buckets. `ends`: the last gradient of each.
Fusion by_ends(const std::vector<std::size_t>& ends);

}  // namespace syncline::tune
