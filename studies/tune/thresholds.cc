#include "studies/tune/thresholds.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>

#include "core/base/index.h"
#include "core/codec.h"
#include "core/plan/fusion.h"

namespace syncline::tune {
namespace {

constexpr Bytes kNone = std::numeric_limits<Bytes>::max();

// Returns the least value above this one to examine.
std::int64_t step_from(std::int64_t value, std::size_t candidates) {
  constexpr std::int64_t kPart = 100;
  return value + (candidates > kMaxExact ? std::max<std::int64_t>(1, value / kPart) : 1);
}

// Returns the first place from `first` on, before `end`, for which `holds` is false; `end` if there
// is none. Requires that it stays false from there on. Near places are found fastest.
template <typename Holds>
std::size_t first_beyond(std::size_t first, std::size_t end, const Holds& holds) {
  std::size_t step = 1;
  for (; first + step < end && holds(first + step - 1); step *= 2) first += step;
  for (std::size_t last = std::min(first + step, end); first < last;) {
    const std::size_t middle = first + (last - first) / 2;
    if (holds(middle)) {
      first = middle + 1;
    } else {
      last = middle;
    }
  }
  return first;
}

// Returns the smallest size above `fusion.size` that changes a decision of this partition. A bucket
// that closed on reaching the limit stays open once the limit exceeds its bytes. One that closed
// before exceeding it takes the next unit once the limit holds both. Buckets closed by the count do
// not depend on the size.
Bytes next_size(const FusionUnits& units, const GroupEnds& ends, const Fusion& fusion) {
  Bytes next = kNone;
  std::size_t begin = 0;
  for (std::size_t g = 0; g + 1 < ends.size(); ++g) {
    const std::size_t end = ends[g];
    const Bytes bytes = units.bytes(std::exchange(begin, end), end);
    if (g == 0 && fusion.first_size > 0) continue;  // the first bucket has its own limit
    if (fusion.close == Fusion::Close::kAfter) {
      if (bytes >= fusion.size) next = std::min(next, bytes + 1);
      continue;
    }
    const Bytes joined = bytes + units.bytes(end, end + 1);
    if (joined > fusion.size) next = std::min(next, joined);
  }
  return next;
}

}  // namespace

FusionUnits::FusionUnits(const std::vector<const Tensor*>& tensors,
                         const std::vector<int>& candidates, const Fusion& fusion)
    : bytes_{0}, tensors_{0} {
  const auto add = [&](std::span<const int> unit) {
    Bytes bytes = bytes_.back();
    for (const int tensor : unit) bytes += tensors[index(tensor)]->bytes();
    bytes_.push_back(bytes);
    tensors_.push_back(tensors_.back() + static_cast<std::int64_t>(unit.size()));
  };
  if (!fusion.by_layer) {
    for (const int& tensor : candidates) add({&tensor, 1});
    return;
  }
  Fusion layers = fusion;
  layers.rule = Fusion::Rule::kLayer;
  for (const auto& layer : plan::fuse(tensors, candidates, layers)) add(layer);
}

// A group that closes once it reaches a limit ends with the unit that does so. One that closes
// before it exceeds a limit ends ahead of that unit, but holds one at least.
GroupEnds FusionUnits::ends(const Fusion& fusion) const {
  const bool by_size = fusion.rule == Fusion::Rule::kSize;
  const bool after = fusion.close == Fusion::Close::kAfter;
  const std::int64_t most = fusion.count > 0 ? fusion.count : kNone;
  const std::size_t places = bytes_.size();
  GroupEnds ends;
  for (std::size_t begin = 0; begin + 1 < places; begin = ends.back()) {
    const bool first = ends.empty() && fusion.first_size > 0;
    const Bytes limit = !by_size ? kNone : first ? fusion.first_size : fusion.size;
    const auto goes_on = [&](std::size_t end) {
      const Bytes held = bytes(begin, end);
      const std::int64_t count = tensors_[end] - tensors_[begin];
      return after ? held < limit && count < most : held <= limit && count <= most;
    };
    const std::size_t end = after ? std::min(first_beyond(begin + 1, places, goes_on), places - 1)
                                  : first_beyond(begin + 2, places, goes_on) - 1;
    ends.push_back(static_cast<std::uint32_t>(end));
  }
  return ends;
}

SeparateUnits::SeparateUnits(const Workload& workload)
    : others_(std::ranges::any_of(
          workload.tensors, [](const Tensor& tensor) { return tensor.sparse || tensor.frozen; })) {
  std::vector<const Tensor*> tensors;
  for (const Tensor& tensor : workload.tensors) tensors.push_back(&tensor);
  for (const auto& list : separate_tensors(workload)) lists_.emplace_back(tensors, list, Fusion{});
}

std::optional<GroupEnds> SeparateUnits::ends(const Strategy& strategy) const {
  const Fusion& fusion = strategy.fusion;
  const bool joins = fusion.rule == Fusion::Rule::kSize || fusion.rule == Fusion::Rule::kCount;
  const bool in_turn = fusion.cycle == 0 && fusion.order == Fusion::Order::kBackward;
  const compress::Codec* codec = compress::find_codec(strategy.compression.codec);
  // Some gradients are in no group, or parameters are grouped instead.
  const bool others = others_ || (codec != nullptr && codec->sparse) || strategy.local_sgd.enabled;
  const bool own = strategy.traits.buckets != BucketTraits{};
  if (!joins || !in_turn || fusion.by_layer || others || own) return std::nullopt;
  GroupEnds all;
  for (const FusionUnits& list : lists_) {
    const GroupEnds ends = list.ends(fusion);
    all.insert(all.end(), ends.begin(), ends.end());
  }
  return all;
}

std::vector<Bytes> size_thresholds(const std::vector<const Tensor*>& tensors,
                                   const std::vector<int>& candidates, Fusion fusion) {
  const FusionUnits units(tensors, candidates, fusion);
  std::vector<Bytes> thresholds;
  GroupEnds last;
  fusion.rule = Fusion::Rule::kSize;
  for (fusion.size = 0; fusion.size != kNone;) {
    GroupEnds ends = units.ends(fusion);
    const Bytes next = next_size(units, ends, fusion);
    // If another decision ends a bucket at the same place, the groups may stay the same.
    if (thresholds.empty() || last != ends) {
      thresholds.push_back(fusion.size);
      last = std::move(ends);
    }
    assert(next > fusion.size && "a decision turns at a larger size");
    fusion.size = std::max(next, step_from(fusion.size, candidates.size()));
  }
  return thresholds;
}

std::vector<std::int64_t> count_thresholds(const std::vector<const Tensor*>& tensors,
                                           const std::vector<int>& candidates, Fusion fusion) {
  const FusionUnits units(tensors, candidates, fusion);
  std::vector<std::int64_t> thresholds;
  GroupEnds last;
  fusion.rule = Fusion::Rule::kCount;
  const auto most = static_cast<std::int64_t>(candidates.size());
  for (fusion.count = 1; fusion.count <= most;
       fusion.count = step_from(fusion.count, candidates.size())) {
    GroupEnds ends = units.ends(fusion);
    if (!thresholds.empty() && last == ends) continue;
    thresholds.push_back(fusion.count);
    last = std::move(ends);
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
