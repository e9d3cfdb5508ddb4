#include "studies/tune/thresholds.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/base/index.h"
#include "core/plan/fusion.h"

namespace syncline::tune {
namespace {

using Parts = std::vector<std::vector<int>>;

constexpr Bytes kNone = std::numeric_limits<Bytes>::max();

Bytes bytes_of(const std::vector<const Tensor*>& tensors, const std::vector<int>& group) {
  Bytes bytes = 0;
  for (const int number : group) bytes += tensors[index(number)]->bytes();
  return bytes;
}

// Returns the least value above this one to examine.
std::int64_t step_from(std::int64_t value, std::size_t candidates) {
  constexpr std::int64_t kPart = 100;
  return value + (candidates > kMaxExact ? std::max<std::int64_t>(1, value / kPart) : 1);
}

// Returns the smallest size above `fusion.size` that changes a decision of this partition. A bucket
// that closed on reaching the limit stays open once the limit exceeds its bytes. One that closed
// before exceeding it takes the next unit once the limit holds both. Buckets closed by the count do
// not depend on the size.
Bytes next_size(const std::vector<const Tensor*>& tensors, const std::vector<int>& candidates,
                const Parts& groups, const Fusion& fusion) {
  // The unit with which each group begins: a tensor, or its layer.
  Parts units;
  if (fusion.by_layer && fusion.close == Fusion::Close::kBefore) {
    Fusion layers = fusion;
    layers.rule = Fusion::Rule::kLayer;
    units = plan::fuse(tensors, candidates, layers);
  }
  const auto first_unit = [&](const std::vector<int>& group) {
    for (const auto& unit : units) {
      if (unit.front() == group.front()) return bytes_of(tensors, unit);
    }
    return tensors[index(group.front())]->bytes();
  };
  Bytes next = kNone;
  for (std::size_t g = 0; g + 1 < groups.size(); ++g) {
    if (g == 0 && fusion.first_size > 0) continue;  // the first bucket has its own limit
    const Bytes bytes = bytes_of(tensors, groups[g]);
    if (fusion.close == Fusion::Close::kAfter) {
      if (bytes >= fusion.size) next = std::min(next, bytes + 1);
      continue;
    }
    const Bytes joined = bytes + first_unit(groups[g + 1]);
    if (joined > fusion.size) next = std::min(next, joined);
  }
  return next;
}

}  // namespace

std::vector<Bytes> size_thresholds(const std::vector<const Tensor*>& tensors,
                                   const std::vector<int>& candidates, Fusion fusion) {
  std::vector<Bytes> thresholds;
  Parts last;
  fusion.rule = Fusion::Rule::kSize;
  for (fusion.size = 0; fusion.size != kNone;) {
    Parts groups = plan::fuse(tensors, candidates, fusion);
    const Bytes next = next_size(tensors, candidates, groups, fusion);
    // If another decision ends a bucket at the same place, the groups may stay the same.
    if (thresholds.empty() || last != groups) {
      thresholds.push_back(fusion.size);
      last = std::move(groups);
    }
    assert(next > fusion.size && "a decision turns at a larger size");
    fusion.size = std::max(next, step_from(fusion.size, candidates.size()));
  }
  return thresholds;
}

std::vector<std::int64_t> count_thresholds(const std::vector<const Tensor*>& tensors,
                                           const std::vector<int>& candidates, Fusion fusion) {
  std::vector<std::int64_t> thresholds;
  Parts last;
  fusion.rule = Fusion::Rule::kCount;
  const auto most = static_cast<std::int64_t>(candidates.size());
  for (fusion.count = 1; fusion.count <= most;
       fusion.count = step_from(fusion.count, candidates.size())) {
    Parts groups = plan::fuse(tensors, candidates, fusion);
    if (!thresholds.empty() && last == groups) continue;
    thresholds.push_back(fusion.count);
    last = std::move(groups);
  }
  return thresholds;
}

Bytes roundest_size(Bytes low, Bytes high) {
  if (low <= 0) return low;
  Bytes round = low;
  for (Bytes unit = 2; unit <= high; unit *= 2) {
    const Bytes multiple = (low + unit - 1) / unit * unit;
    if (multiple > high) break;
    round = multiple;
  }
  return round;
}

std::vector<Bytes> rounder_sizes(Bytes size) {
  std::vector<Bytes> written;
  for (Bytes unit = 1; unit <= (kNone >> 6); unit *= 2) {
    written.push_back(unit);
    // 25, 50, 100, ... of a unit, up to 800.
    if (unit >= kKiB && std::countr_zero(static_cast<std::uint64_t>(unit)) % 10 <= 5) {
      written.push_back(25 * unit);
    }
  }
  if (size <= 0 || std::find(written.begin(), written.end(), size) != written.end()) return {};
  const auto apart = [&](Bytes other) {
    return std::fabs(std::log(static_cast<double>(other) / static_cast<double>(size)));
  };
  constexpr double kNear = 2;  // largest factor of the distance
  std::erase_if(written, [&](Bytes other) { return apart(other) > std::log(kNear) + 1e-9; });
  std::sort(written.begin(), written.end(), [&](Bytes a, Bytes b) { return apart(a) < apart(b); });
  const Bytes unit = size >= kMiB ? kMiB : kKiB;
  const Bytes below = size / unit * unit;
  const Bytes nearer = (size + unit / 2) / unit * unit;
  for (const Bytes whole : {nearer, 2 * below + unit - nearer}) {
    if (whole > 0) written.push_back(whole);
  }
  return written;
}

std::vector<std::size_t> spread_indices(std::size_t count, std::size_t most) {
  const std::size_t taken = std::min(count, most);
  std::vector<std::size_t> places(taken, 0);
  for (std::size_t i = 1; i < taken; ++i) places[i] = i * (count - 1) / (taken - 1);
  return places;
}

Fusion by_size(Bytes size, Fusion::Close close, Bytes first_size) {
  Fusion fusion;
  fusion.rule = Fusion::Rule::kSize;
  fusion.size = size;
  fusion.first_size = first_size;
  fusion.close = close;
  return fusion;
}

Fusion by_ends(const std::vector<std::size_t>& ends) {
  Fusion fusion;
  fusion.rule = Fusion::Rule::kIndex;
  for (const std::size_t end : ends) fusion.ends.push_back(static_cast<std::int64_t>(end));
  return fusion;
}

}  // namespace syncline::tune
