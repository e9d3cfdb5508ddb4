#include "core/plan/fusion.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <deque>
#include <iterator>
#include <limits>
#include <map>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/base/index.h"

namespace syncline::plan {
namespace {

using Parts = std::vector<std::vector<int>>;

std::string_view layer_key(std::string_view name, Fusion::LayerKey key) {
  const auto dot = key == Fusion::LayerKey::kFirstDot ? name.find('.') : name.rfind('.');
  return name.substr(0, dot);
}

// Returns the number of a module by its name, "12" or "encoder_layer_12" (torchvision's ViT), as
// text; any other name as it is.
std::string_view number_of(std::string_view module) {
  const std::size_t at = module.rfind('_');
  if (at == std::string_view::npos) return module;
  const std::string_view list = module.substr(0, at);
  const bool numbered = list.ends_with("layer") || list.ends_with("layers") ||
                        list.ends_with("block") || list.ends_with("blocks");
  return numbered ? module.substr(at + 1) : module;
}

// Returns layers in first-seen order; their tensors need not be neighbours.
Parts layers(const std::vector<const Tensor*>& tensors, const std::vector<int>& candidates,
             Fusion::LayerKey key) {
  Parts groups;
  std::unordered_map<std::string_view, std::size_t> seen;
  for (const int tensor : candidates) {
    const auto layer = layer_key(tensors[index(tensor)]->name, key);
    const auto [it, fresh] = seen.try_emplace(layer, groups.size());
    if (fresh) groups.emplace_back();
    groups[it->second].push_back(tensor);
  }
  return groups;
}

// Merges units (tensors or layers) until a limit is reached (close: after) or would be exceeded
// (before; a unit above the limit travels by itself). The size test uses the tensors' bytes without
// padding, as frameworks do; the first bucket may have its own limit, as in DDP.
void merge(const std::vector<const Tensor*>& tensors,
           const std::vector<std::span<const int>>& units, const Fusion& fusion,
           const GroupUse& use) {
  constexpr auto kNoLimit = std::numeric_limits<std::int64_t>::max();
  const std::int64_t most = fusion.count > 0 ? fusion.count : kNoLimit;
  const bool by_size = fusion.rule == Fusion::Rule::kSize;
  std::vector<int> group;
  bool none = true;  // true: no group is closed yet
  // The open group: its first unit, its tensors and its bytes.
  std::size_t begin = 0;
  std::int64_t held = 0;
  Bytes bytes = 0;
  const auto close = [&](std::size_t end) {
    if (begin == end) return;
    group.clear();
    for (; begin < end; ++begin)
      group.insert(group.end(), units[begin].begin(), units[begin].end());
    use(group);
    none = false;
    held = bytes = 0;
  };
  for (std::size_t u = 0; u < units.size(); ++u) {
    Bytes added = 0;
    for (const int tensor : units[u]) added += tensors[index(tensor)]->bytes();
    const auto more = static_cast<std::int64_t>(units[u].size());
    const bool first = none && fusion.first_size > 0;
    const Bytes limit = !by_size ? kNoLimit : first ? fusion.first_size : fusion.size;
    const bool exceeds = bytes + added > limit || held + more > most;
    if (fusion.close == Fusion::Close::kBefore && exceeds) close(u);
    held += more;
    bytes += added;
    const bool reaches = bytes >= limit || held >= most;
    if (fusion.close == Fusion::Close::kAfter && reaches) close(u + 1);
  }
  close(units.size());
}

// Splits at inclusive end indices; an end past the last gradient has no effect.
void split_at(const std::vector<int>& candidates, const std::vector<std::int64_t>& ends,
              const GroupUse& use) {
  std::size_t begin = 0;
  const auto cut = [&](std::size_t end) {
    if (begin >= end) return;
    use(std::span(candidates).subspan(begin, end - begin));
    begin = end;
  };
  for (const auto end : ends) cut(std::min(index(end) + 1, candidates.size()));
  cut(candidates.size());
}

// Uses groups as listed; a candidate in none travels by itself, other tensors are left out.
void use_listed(std::size_t tensors, const std::vector<int>& candidates, const Parts& listed,
                const GroupUse& use) {
  std::vector<char> left(tensors, 0);
  for (const int tensor : candidates) left.at(index(tensor)) = 1;
  const auto take = [&](int tensor) {  // a list may name missing tensors
    return index(tensor) < left.size() && std::exchange(left[index(tensor)], 0) == 1;
  };
  std::vector<int> group;
  for (const auto& list : listed) {
    group.clear();
    std::ranges::copy_if(list, std::back_inserter(group), take);
    if (!group.empty()) use(group);
  }
  for (const int& tensor : candidates) {
    if (take(tensor)) use({&tensor, 1});
  }
}

Bytes multiple(Bytes bytes, Bytes unit) { return (bytes + unit - 1) / unit * unit; }

// Returns the padded bytes of a tensor in a bucket with elements of `size` bytes.
Bytes padded(const Tensor& tensor, const Fusion& fusion, const BucketTraits& traits, Bytes size) {
  Bytes bytes = tensor.elements * size;
  if (traits.pad_rows > 1 && !tensor.shape.empty()) {
    bytes = bytes / tensor.shape.front() * multiple(tensor.shape.front(), traits.pad_rows);
  }
  return multiple(bytes, fusion.align);
}

// Packs the gradients that are ready at a tick into groups, as tick_releases() describes.
std::vector<std::vector<int>> packed(std::deque<int> ready, const std::vector<OnWire>& wire,
                                     Bytes threshold) {
  std::vector<std::vector<int>> groups;
  while (!ready.empty()) {
    const OnWire& first = wire[index(ready.front())];
    auto& group = groups.emplace_back(1, ready.front());
    ready.pop_front();
    Bytes bytes = first.bytes;
    Bytes looked_past = 0;
    std::vector<int> skipped;
    while (!ready.empty()) {
      const OnWire& next = wire[index(ready.front())];
      if (next.dtype == first.dtype && bytes + next.bytes <= threshold) {
        group.push_back(ready.front());
        bytes += next.bytes;
      } else {
        looked_past += next.bytes;
        if (bytes + looked_past > threshold) break;
        skipped.push_back(ready.front());
      }
      ready.pop_front();
    }
    ready.insert(ready.begin(), skipped.begin(), skipped.end());
  }
  return groups;
}

}  // namespace

std::string layer_of(const std::string& name, Fusion::LayerKey key) {
  return std::string(layer_key(name, key));
}

int layer_number(const std::string& name) {
  for (std::size_t at = name.find('.'); at != std::string::npos; at = name.find('.', at + 1)) {
    const std::size_t end = name.find('.', at + 1);
    if (end == std::string::npos) return -1;
    const std::string_view word = number_of({name.data() + at + 1, end - at - 1});
    const bool digits = !word.empty() && word.size() < 6 && std::ranges::all_of(word, [](char c) {
      return std::isdigit(static_cast<unsigned char>(c)) != 0;
    });
    if (digits) return std::stoi(std::string(word));
  }
  return -1;
}

bool recomputes_layer(const Workload& workload, const Tensor& tensor) {
  if (workload.recompute != Workload::Recompute::kFull) return false;
  const int every = workload.recompute_every;
  return every == 1 || layer_number(tensor.name) % every == every - 1;
}

std::vector<AgainOrKept> again_or_kept(const OperatorList& list) {
  std::vector<AgainOrKept> does(list.operators.size(), AgainOrKept::kOutside);
  std::vector<int> layers(list.values.size(), -1);  // of parameters and their narrow copies
  std::map<int, int> products;                      // so far, per layer
  std::size_t first = does.size(), last = 0;        // operators between the layers' ends
  for (std::size_t o = 0; o < does.size(); ++o) {
    const Operator& op = list.operators[o];
    if (op.part != StepPart::kForward) break;
    int layer = -1;
    for (const Operand& input : op.inputs) {
      int& own = layers[index(input.value)];
      if (own < 0) own = layer_number(list.values[index(input.value)].name);
      layer = std::max(layer, own);
    }
    if (op.kind == "cast" && op.inputs.size() == 1 && layer >= 0) {
      layers[index(op.outputs.front().value)] = layer;
      continue;
    }
    if (layer >= 0) {
      first = std::min(first, o);
      last = o;
    }
    // torchtitan's list names no product in FP8: those are computed again.
    const bool counted = layer >= 0 && op.columns > 0 && !op.rounded;
    const bool keeps = op.kind.starts_with("flash_attn") || (counted && ++products[layer] % 2 == 1);
    does[o] = keeps ? AgainOrKept::kKept : AgainOrKept::kAgain;
  }
  for (std::size_t o = 0; o < does.size(); ++o) {
    if (o < first || o > last) does[o] = AgainOrKept::kOutside;
  }
  return does;
}

bool layer_matrix(const Tensor& tensor) {
  return tensor.shape.size() >= 2 && layer_number(tensor.name) >= 0;
}

void for_each_group(const std::vector<const Tensor*>& tensors, const std::vector<int>& candidates,
                    const Fusion& fusion, const GroupUse& use) {
  switch (fusion.rule) {
    case Fusion::Rule::kNone:
      return use_listed(tensors.size(), candidates, {}, use);
    case Fusion::Rule::kLayer:
      for (const auto& layer : layers(tensors, candidates, fusion.layer_key)) use(layer);
      return;
    case Fusion::Rule::kOne:
      if (!candidates.empty()) use(candidates);
      return;
    case Fusion::Rule::kIndex:
      return split_at(candidates, fusion.ends, use);
    case Fusion::Rule::kGroups:
      return use_listed(tensors.size(), candidates, fusion.groups, use);
    case Fusion::Rule::kSize:
    case Fusion::Rule::kCount:
    case Fusion::Rule::kMgWfbp:  // needs ready times and costs: buckets.cc
      break;
  }
  const Parts by_layer = fusion.by_layer ? layers(tensors, candidates, fusion.layer_key) : Parts{};
  std::vector<std::span<const int>> units(by_layer.begin(), by_layer.end());
  if (!fusion.by_layer) {
    units.reserve(candidates.size());
    for (const int& tensor : candidates) units.emplace_back(&tensor, 1);
  }
  merge(tensors, units, fusion, use);
}

std::vector<std::vector<int>> fuse(const std::vector<const Tensor*>& tensors,
                                   const std::vector<int>& candidates, const Fusion& fusion) {
  Parts groups;
  for_each_group(tensors, candidates, fusion, [&](std::span<const int> group) {
    groups.emplace_back(group.begin(), group.end());
  });
  return groups;
}

Bytes padded_bytes(const Tensor& tensor, const Fusion& fusion, const BucketTraits& traits) {
  return padded(tensor, fusion, traits, size_of(tensor.dtype));
}

DType sum_format(DType own, const Fusion& fusion) {
  const DType sums = fusion.sum_format.value_or(own);
  const Bytes more = size_of(sums) - size_of(own);
  return (fusion.sums_in_fp32() ? more > 0 : more < 0) ? sums : own;
}

void add_buckets(const std::vector<const Tensor*>& tensors, std::span<const int> group,
                 const Fusion& fusion, const BucketTraits& traits, std::vector<Bucket>& buckets) {
  const auto first = static_cast<std::ptrdiff_t>(buckets.size());
  for (const int number : group) {
    const Tensor& tensor = *tensors[index(number)];
    const DType dtype = sum_format(tensor.dtype, fusion);
    const Bytes bytes = tensor.elements * size_of(dtype);
    auto it = std::ranges::find(buckets.begin() + first, buckets.end(), dtype, &Bucket::dtype);
    if (it == buckets.end()) {
      it = buckets.emplace(buckets.end());
      it->dtype = dtype;
      it->tensors.reserve(group.size());
    }
    it->tensors.push_back(number);
    it->elements += tensor.elements;
    it->bytes += bytes;
    it->padded_bytes = multiple(it->padded_bytes, traits.align_elements * size_of(dtype)) +
                       padded(tensor, fusion, traits, size_of(dtype));
    it->ready = std::max(it->ready, number);
  }
  for (Bucket& bucket : std::span(buckets).subspan(index(first))) {
    const Bytes unit = traits.pad_elements * size_of(bucket.dtype);
    if (traits.pad_elements > 1) bucket.padded_bytes = multiple(bucket.padded_bytes, unit);
  }
}

std::vector<Bucket> buckets_of(const std::vector<const Tensor*>& tensors,
                               const std::vector<int>& group, const Fusion& fusion,
                               const BucketTraits& traits) {
  std::vector<Bucket> buckets;
  add_buckets(tensors, group, fusion, traits, buckets);
  return buckets;
}

std::vector<std::vector<int>> mg_wfbp_groups(const std::vector<Seconds>& ready,
                                             const std::vector<Bytes>& bytes, Seconds start_up,
                                             const std::function<Seconds(Bytes)>& cost,
                                             Bytes least) {
  std::vector<std::vector<int>> groups;
  Seconds free = 0;  // when the groups before the open one are done
  Bytes open = 0;
  for (std::size_t i = 0; i < ready.size(); ++i) {
    if (i > 0) {
      const Seconds begin = std::max(free, ready[i - 1]);
      const Seconds end = begin + cost(open);
      const bool worth_waiting = begin > ready[i] || ready[i] - begin < start_up;
      if (open < least || (ready[i] < end && worth_waiting)) {
        groups.back().push_back(static_cast<int>(i));
        open += bytes[i];
        continue;
      }
      free = end;
    }
    groups.push_back({static_cast<int>(i)});
    open = bytes[i];
  }
  return groups;
}

std::vector<Release> tick_releases(const std::vector<Seconds>& ready,
                                   const std::vector<OnWire>& wire, Bytes threshold, Seconds cycle,
                                   Seconds phase) {
  std::vector<Release> releases;
  std::size_t next = 0;
  while (next < ready.size()) {
    const double cycles = std::max(0.0, std::ceil((ready[next] - phase) / cycle));
    // Rounding must not move a gradient's own tick before it.
    const Seconds time = std::max(phase + cycles * cycle, ready[next]);
    std::deque<int> there;
    while (next < ready.size() && ready[next] <= time) there.push_back(static_cast<int>(next++));
    releases.push_back({time, packed(std::move(there), wire, threshold)});
  }
  return releases;
}

}  // namespace syncline::plan
