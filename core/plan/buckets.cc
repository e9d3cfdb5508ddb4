#include "core/plan/buckets.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <iterator>
#include <limits>
#include <numeric>
#include <queue>
#include <span>
#include <unordered_map>
#include <utility>

#include "core/base/index.h"
#include "core/compress/dgc.h"
#include "core/compress/power_sgd.h"
#include "core/cost.h"
#include "core/plan/fusion.h"
#include "core/plan/route.h"

namespace syncline::plan {
namespace {

std::vector<const Tensor*> pointers(const std::vector<Tensor>& tensors) {
  std::vector<const Tensor*> list;
  for (const auto& tensor : tensors) list.push_back(&tensor);
  return list;
}

// Returns the codec in force at this step, or nullptr while gradients travel uncompressed.
const compress::Codec* codec_at(const Compression& compression, std::int64_t step) {
  if (compression.codec.empty()) return nullptr;
  const compress::Codec* codec = compress::find_codec(compression.codec);
  const bool begins = codec->sparse || codec->low_rank;
  return begins && compress::sparsity_index(compression, step) < 0 ? nullptr : codec;
}

// True if a codec that keeps every element in a narrower format applies to this tensor.
bool takes(const compress::Codec* codec, const Tensor& tensor) {
  return codec != nullptr && !codec->sparse && !codec->low_rank && codec->applies(tensor, 0);
}

OnWire on_wire(const compress::Codec* codec, const Tensor& tensor) {
  if (!takes(codec, tensor)) return {tensor.dtype, tensor.bytes()};
  return {codec->wire, codec->encoded_bytes(tensor.elements, tensor.elements)};
}

// Returns the tensor with which a gradient is ready: itself, the last one of its segment, or the
// last of all.
int arrives_with(int tensor, const Strategy& strategy, int last) {
  if (strategy.after_passes) return last;
  if (strategy.graph_segments.empty()) return tensor;
  const auto end = std::ranges::lower_bound(strategy.graph_segments, tensor);
  return end == strategy.graph_segments.end()
             ? last
             : static_cast<int>(std::min<std::int64_t>(*end, last));
}

// Returns each gradient's ready time from the step's begin. It includes encoding, which ticks do
// gradient by gradient beforehand.
std::vector<Seconds> ready_times(const Workload& workload, const Cluster& cluster,
                                 const Strategy& strategy, const compress::Codec* codec) {
  std::vector<Seconds> ready;
  Seconds clock = cluster.step_overhead() + earlier_passes(workload) + workload.forward;
  for (const auto& tensor : workload.tensors) {
    clock += tensor.backward;
    if (takes(codec, tensor)) {
      const double traffic =
          codec->encode_traffic(tensor.elements, tensor.elements, size_of(tensor.dtype));
      clock += static_cast<double>(strategy.compression.encode_launches) * cluster.device.launch;
      if (cluster.device.memory > 0) clock += traffic / cluster.device.memory;
    }
    ready.push_back(clock);
  }
  const int last = static_cast<int>(ready.size()) - 1;
  for (int t = 0; t < last; ++t) {
    ready[index(t)] = ready[index(arrives_with(t, strategy, last))];
  }
  return ready;
}

// Groups by MG-WFBP on this cluster, with the start-up and cost of an all-reduce by its network.
std::vector<std::vector<int>> merged_by_cost(const Workload& workload, const Cluster& cluster,
                                             const Strategy& strategy, const compress::Codec* codec,
                                             const std::vector<int>& candidates) {
  collective::CostCache cache(cluster);
  const auto route = [&](Bytes bytes) {
    Bucket bucket;
    bucket.elements = std::max<Bytes>(1, bytes / 4);
    bucket.padded_bytes = 4 * bucket.elements;
    return exchange_of(bucket, workload, cluster, strategy).reduce;
  };
  const auto cost = [&](Bytes bytes) {
    Seconds sum = 0;
    for (const RouteStep& leg : route(bytes)) sum += cache.time(leg.collective);
    return sum;
  };
  const auto all = ready_times(workload, cluster, strategy, codec);
  std::vector<Seconds> ready;
  std::vector<Bytes> bytes;
  for (const int candidate : candidates) {
    const std::size_t t = index(candidate);
    ready.push_back(all[t]);
    bytes.push_back(on_wire(codec, workload.tensors[t]).bytes);
  }
  // The rule counts candidates; the plan counts tensors.
  const Bytes least = strategy.fusion.min_elements * 4;
  const auto in_places = [&](std::vector<std::vector<int>> groups) {
    for (auto& group : groups) {
      for (int& place : group) place = candidates[index(place)];
    }
    return groups;
  };
  // If the scenario gives the framework's assumed costs, its decision follows these.
  for (const auto& assumed : strategy.fusion.costs) {
    if (assumed.ranks != cluster.ranks()) continue;
    const auto line = [&](Bytes size) {
      return assumed.latency + assumed.seconds_per_byte * static_cast<double>(size);
    };
    return in_places(mg_wfbp_groups(ready, bytes, assumed.latency, line, least));
  }
  // The start-up of a collective of ordinary size: its time without its transfer.
  Seconds start_up = 0;
  for (const auto& [collective, own_stream, last] : route(kMiB)) {
    start_up += cache.time(collective) -
                cache.cost(collective).seconds_per_byte * static_cast<double>(collective.bytes());
  }
  return in_places(mg_wfbp_groups(ready, bytes, start_up, cost, least));
}

// Returns the cuts of a bucket of one tensor: the framework's, else even parts.
std::vector<std::int64_t> cuts_of(const Bucket& bucket, Bytes most, const BucketTraits& traits) {
  if (bucket.sparse || bucket.codec != nullptr || bucket.tensors.size() > 1) return {};
  const auto listed =
      std::ranges::find(traits.cuts, bucket.tensors.front(), &BucketTraits::Cuts::tensor);
  if (listed != traits.cuts.end()) return listed->at;
  std::vector<std::int64_t> at;
  if (most == 0 || bucket.bytes <= most) return at;
  const std::int64_t count = (bucket.bytes + most - 1) / most;
  const std::int64_t length = (bucket.elements + count - 1) / count;
  for (std::int64_t end = length; end < bucket.elements; end += length) at.push_back(end);
  return at;
}

// Splits buckets of one large tensor into parts of it with the same release.
void partition(GradientBuckets& gradients, const Strategy& strategy) {
  const Bytes align = strategy.fusion.align;
  std::vector<Bucket> parts;
  std::vector<std::pair<Seconds, Seconds>> releases;
  for (std::size_t b = 0; b < gradients.buckets.size(); ++b) {
    const Bucket& bucket = gradients.buckets[b];
    auto ends = cuts_of(bucket, strategy.partition, strategy.traits.buckets);
    std::erase_if(ends, [&](std::int64_t end) { return end <= 0 || end >= bucket.elements; });
    if (!gradients.releases.empty()) {
      releases.insert(releases.end(), ends.size() + 1, gradients.releases[b]);
    }
    if (ends.empty()) {
      parts.push_back(bucket);
      continue;
    }
    ends.push_back(bucket.elements);
    std::int64_t first = 0;
    for (const std::int64_t end : ends) {
      Bucket part = bucket;
      part.first = std::exchange(first, end);
      part.elements = end - part.first;
      part.bytes = part.elements * size_of(part.dtype);
      part.padded_bytes = (part.bytes + align - 1) / align * align;
      parts.push_back(std::move(part));
    }
  }
  gradients = {std::move(parts), std::move(releases)};
}

// True if gradients ready at a tick are packed then. Other rules' buckets are complete before it.
bool packs_at_ticks(const Fusion& fusion) {
  return fusion.rule == Fusion::Rule::kSize && fusion.close == Fusion::Close::kBefore &&
         fusion.first_size == 0 && fusion.count == 0 && !fusion.by_layer &&
         fusion.order == Fusion::Order::kBackward;
}

// Packs at ticks like Horovod. The buckets of one tick keep their queue's order; sparse gradients,
// which are gathered, are released at their tick too.
GradientBuckets released_at_ticks(const Workload& workload, const Cluster& cluster,
                                  const Strategy& strategy, const compress::Codec* codec,
                                  const std::vector<int>& candidates, std::vector<Bucket> alone,
                                  int tick_phase) {
  // Ready times of the candidates, and their format on the wire.
  const auto tensors = pointers(workload.tensors);
  const auto all = ready_times(workload, cluster, strategy, codec);
  const Seconds cycle = strategy.fusion.cycle;
  const Seconds phase = cycle * (tick_phase + 0.5) / kTickPhases;
  std::vector<Seconds> ready;
  std::vector<OnWire> wire;
  for (const int candidate : candidates) {
    const std::size_t t = index(candidate);
    ready.push_back(all[t]);
    wire.push_back(on_wire(codec, workload.tensors[t]));
  }
  // Releases by tick: packed groups, and each separate bucket at the first tick after it is ready.
  std::vector<std::pair<Seconds, Bucket>> released;
  for (const auto& release : tick_releases(ready, wire, strategy.fusion.size, cycle, phase)) {
    for (const auto& places : release.groups) {
      std::vector<int> group;
      for (const int place : places) group.push_back(candidates[index(place)]);
      for (auto& bucket : buckets_of(tensors, group, strategy.fusion, strategy.traits.buckets)) {
        released.emplace_back(release.time, std::move(bucket));
      }
    }
  }
  for (auto& bucket : alone) {
    const Seconds there = all[index(bucket.ready)];
    released.emplace_back(tick_releases({there}, {OnWire{}}, 0, cycle, phase).front().time,
                          std::move(bucket));
  }
  // Without packing, buckets are already in sending order.
  const auto queued = [&](const auto& one) {
    return std::pair(one.first, candidates.empty() ? 0 : one.second.tensors.front());
  };
  std::ranges::stable_sort(released, {}, queued);
  GradientBuckets gradients;
  for (auto& [time, bucket] : released) {
    gradients.releases.emplace_back(time, all[index(bucket.ready)]);
    gradients.buckets.push_back(std::move(bucket));
  }
  return gradients;
}

// Orders buckets by their groups, each ready no sooner than those before it.
void take_turns(std::vector<Bucket>& buckets, const Fusion& fusion) {
  std::unordered_map<int, std::size_t> turn;
  for (std::size_t g = 0; g < fusion.groups.size(); ++g) {
    for (const int tensor : fusion.groups[g]) turn.emplace(tensor, g);
  }
  const auto turn_of = [&](const Bucket& bucket) {
    const auto found = turn.find(bucket.tensors.front());
    return found == turn.end() ? fusion.groups.size() : found->second;
  };
  std::ranges::stable_sort(buckets, {}, turn_of);
  int ready = 0;
  for (Bucket& bucket : buckets) bucket.ready = ready = std::max(ready, bucket.ready);
}

// Adds the candidates' buckets by the fusion rule, in the order of their formation.
void add_by_rule(const Workload& workload, const Cluster& cluster, const Strategy& strategy,
                 const compress::Codec* codec, std::vector<int> candidates,
                 std::vector<Bucket>& buckets) {
  const Fusion& fusion = strategy.fusion;
  const bool forward = fusion.order == Fusion::Order::kForward;
  const auto tensors = pointers(workload.tensors);
  if (forward) std::ranges::reverse(candidates);
  std::vector<int> reversed;
  const auto add = [&](std::span<const int> group) {
    if (forward) reversed.assign(group.rbegin(), group.rend());
    add_buckets(tensors, forward ? reversed : group, fusion, strategy.traits.buckets, buckets);
  };
  if (fusion.rule == Fusion::Rule::kMgWfbp) {
    std::ranges::for_each(merged_by_cost(workload, cluster, strategy, codec, candidates), add);
  } else {
    for_each_group(tensors, candidates, fusion, add);
  }
}

// Makes buckets of listed groups wait until the backward pass, which ends at `last`, has passed the
// groups' frozen parameters too.
void wait_for_frozen(const Workload& workload, const Fusion& fusion, int last,
                     std::vector<Bucket>& buckets) {
  if (std::ranges::none_of(workload.tensors, &Tensor::frozen)) return;
  std::unordered_map<int, int> passed;  // by gradient: the last frozen parameter of its group
  for (const auto& group : fusion.groups) {
    int frozen = -1;
    for (const int t : group) {
      if (workload.tensors.at(index(t)).frozen) frozen = std::max(frozen, t);
    }
    for (const int t : group) passed.emplace(t, std::min(frozen, last));
  }
  for (Bucket& bucket : buckets) {
    const auto found = passed.find(bucket.tensors.front());
    if (found != passed.end()) bucket.ready = std::max(bucket.ready, found->second);
  }
}

}  // namespace

std::vector<int> summed_tensors(const Workload& workload, const Strategy& strategy) {
  std::vector<int> summed;
  const auto trained = [&](int t) { return !workload.tensors.at(index(t)).frozen; };
  for (int t = 0; t < static_cast<int>(workload.tensors.size()); ++t) {
    if (trained(t)) summed.push_back(t);
  }
  if (!strategy.traits.buckets.sums_frozen) return summed;
  for (const auto& group : strategy.fusion.groups) {
    if (std::ranges::none_of(group, trained)) continue;
    std::ranges::copy_if(group, std::back_inserter(summed), std::not_fn(trained));
  }
  std::ranges::sort(summed);
  return summed;
}

GradientBuckets gradient_buckets(const Workload& workload, const Cluster& cluster,
                                 const Strategy& strategy, const TrainingPoint& point) {
  // Sparse gradients, and those of a sparse codec, cannot be joined with others.
  const compress::Codec* codec = codec_at(strategy.compression, point.step);
  const auto tensors = pointers(workload.tensors);
  const auto summed = summed_tensors(workload, strategy);
  std::vector<Bucket> alone;
  std::vector<int> candidates;
  for (const int i : summed) {
    const Tensor& tensor = *tensors[index(i)];
    const bool selected = codec != nullptr && codec->sparse &&
                          codec->applies(tensor, strategy.compression.min_elements);
    if (!tensor.sparse && !selected) {
      candidates.push_back(i);
      continue;
    }
    Bucket bucket = buckets_of(tensors, {i}, strategy.fusion, strategy.traits.buckets).front();
    bucket.sparse = tensor.sparse;
    if (tensor.sparse) bucket.kept = tensor.sparse_rows;
    alone.push_back(std::move(bucket));
  }

  // The others follow the fusion rule: at ticks, or each bucket once it is complete.
  GradientBuckets gradients;
  auto& buckets = gradients.buckets;
  const bool ticks = strategy.fusion.cycle > 0 && cluster.ranks() > 1;
  if (ticks && packs_at_ticks(strategy.fusion)) {
    gradients = released_at_ticks(workload, cluster, strategy, codec, candidates, std::move(alone),
                                  point.tick_phase);
  } else {
    buckets = std::move(alone);
    const Fusion& fusion = strategy.fusion;
    const BucketTraits& traits = strategy.traits.buckets;
    add_by_rule(workload, cluster, strategy, codec, std::move(candidates), buckets);
    const int last = summed.empty() ? -1 : summed.back();
    if (fusion.rule == Fusion::Rule::kGroups) wait_for_frozen(workload, fusion, last, buckets);
    for (auto& bucket : buckets) {
      if (traits.with_next) bucket.ready = std::min(bucket.ready + 1, last);
      bucket.ready = arrives_with(bucket.ready, strategy, last);
    }
    if (traits.in_turn && fusion.rule == Fusion::Rule::kGroups) take_turns(buckets, fusion);
    if (!std::ranges::is_sorted(buckets, {}, &Bucket::ready)) {
      std::ranges::stable_sort(buckets, {}, &Bucket::ready);
    }
    if (ticks) {
      gradients = released_at_ticks(workload, cluster, strategy, codec, {}, std::move(buckets),
                                    point.tick_phase);
    }
  }
  // Too large buckets and the effect of a codec are known only now. Low-rank codecs factor whole
  // gradients; the factors are small enough to travel in one piece.
  const bool factors = codec != nullptr && codec->low_rank;
  const auto compress_all = [&] {
    for (auto& bucket : buckets) {
      compress(bucket, codec, strategy.compression, workload, point.step);
    }
  };
  if (factors) compress_all();
  if (strategy.partition > 0 || !strategy.traits.buckets.cuts.empty()) {
    partition(gradients, strategy);
  }
  if (codec != nullptr && !factors) compress_all();
  return gradients;
}

std::vector<std::vector<Bucket>> parameter_buckets(const Workload& workload, const Fusion& fusion,
                                                   const BucketTraits& traits, bool buffers,
                                                   int fragments) {
  auto tensors = pointers(workload.tensors);
  const auto parameters = static_cast<int>(tensors.size());
  for (const auto& buffer : workload.buffers) {
    if (buffers) tensors.push_back(&buffer);
  }
  const auto total = static_cast<double>(gradient_bytes(workload));
  std::vector<std::vector<Bucket>> parts;
  double passed = 0;
  std::vector<int> trained;
  for (int i = 0; i < parameters; ++i) {
    if (!tensors[index(i)]->frozen) trained.push_back(i);
  }
  int next = static_cast<int>(trained.size()) - 1;  // this one and those before it remain
  for (int part = 1; part <= fragments; ++part) {
    std::vector<int> candidates;
    const int kept = fragments - part;  // one for each later part
    for (; next >= kept; --next) {
      const int tensor = trained[index(next)];
      const auto bytes = static_cast<double>(tensors[index(tensor)]->bytes());
      // A tensor belongs to the part that holds its middle.
      const bool behind = passed + bytes / 2 > total * part / fragments;
      if (kept > 0 && behind && !candidates.empty()) break;
      candidates.push_back(tensor);
      passed += bytes;
    }
    for (auto i = parameters; kept == 0 && i < static_cast<int>(tensors.size()); ++i) {
      candidates.push_back(i);
    }
    auto& own = parts.emplace_back();
    for_each_group(tensors, candidates, fusion, [&](std::span<const int> group) {
      add_buckets(tensors, group, fusion, traits, own);
    });
  }
  return parts;
}

std::vector<Bucket> gather_buckets(const Workload& workload, const Strategy& strategy,
                                   const std::vector<std::vector<int>>& groups) {
  const auto tensors = pointers(workload.tensors);
  // Parameters travel in their own format, at offsets like their gradients'.
  std::vector<Bucket> buckets;
  for (const auto& group : groups) {
    add_buckets(tensors, group, {}, strategy.traits.buckets, buckets);
  }
  if (!strategy.traits.buckets.in_turn) return buckets;
  // A group's parameters are updated once the last of its gradients is summed.
  std::unordered_map<int, int> ready;
  int last = 0;
  for (const auto& group : strategy.fusion.groups) {
    last = std::max(last, std::ranges::max(group));
    for (const int tensor : group) ready.emplace(tensor, last);
  }
  for (Bucket& bucket : buckets) {
    for (const int tensor : bucket.tensors) {
      const auto found = ready.find(tensor);
      if (found != ready.end()) bucket.ready = std::max(bucket.ready, found->second);
    }
  }
  return buckets;
}

void factor_whole(Bucket& bucket, const compress::Codec* codec, const Compression& compression) {
  bucket.codec = codec;
  bucket.factors = {compress::square_of(bucket.elements, compression.rank)};
  bucket.kept = compress::low_rank_sizes(bucket.factors).sent_elements();
}

void compress(Bucket& bucket, const compress::Codec* codec, const Compression& compression,
              const Workload& workload, std::int64_t step) {
  if (codec == nullptr || bucket.sparse) return;
  if (codec->whole_bucket) {
    if (bucket.elements > 0) factor_whole(bucket, codec, compression);
    return;
  }
  if (codec->low_rank) {
    const bool known = compress::shapes_known(workload);
    for (const int t : bucket.tensors) {
      const Tensor& tensor = workload.tensors[index(t)];
      bucket.factors.push_back(compress::low_rank_of(tensor, compression, known));
    }
    const auto sizes = compress::low_rank_sizes(bucket.factors);
    if (sizes.matrices == 0) return;
    bucket.codec = codec;
    bucket.kept = sizes.sent_elements();
    return;
  }
  const Tensor& first_tensor = workload.tensors[index(bucket.tensors.front())];
  if (codec->sparse) {
    if (bucket.tensors.size() != 1 || !codec->applies(first_tensor, compression.min_elements)) {
      return;
    }
    const std::size_t at = index(compress::sparsity_index(compression, step));
    bucket.codec = codec;
    bucket.kept = compress::kept_elements(bucket.elements, compression.sparsity[at]);
    return;
  }
  if (!codec->applies(first_tensor, 0)) return;
  bucket.codec = codec;
  bucket.kept = bucket.elements;
}

// Simulates the network as one server: the clock moves to the next moment at which an item becomes
// ready or leaves the network. Ready items wait by urgency; the most urgent is sent when the
// network is free, or earlier if the credit has room for it.
std::vector<int> urgent_first(const std::vector<Urgent>& items, Bytes credit) {
  const auto item = [&](int place) -> const Urgent& { return items[index(place)]; };
  std::vector<int> coming(items.size());
  std::iota(coming.begin(), coming.end(), 0);
  std::ranges::stable_sort(coming, {}, [&](int place) { return item(place).ready; });
  const auto later = [&](int a, int b) {
    return item(a).rank != item(b).rank ? item(a).rank > item(b).rank : a > b;
  };
  std::priority_queue<int, std::vector<int>, decltype(later)> waiting(later);
  std::deque<std::pair<Seconds, Bytes>> handed;  // (end, bytes), in the order of sending
  Bytes under_way = 0;
  Seconds now = 0;
  std::size_t next = 0;
  std::vector<int> order;
  while (order.size() < items.size()) {
    while (next < coming.size() && item(coming[next]).ready <= now) waiting.push(coming[next++]);
    while (!handed.empty() && handed.front().first <= now) {
      under_way -= handed.front().second;
      handed.pop_front();
    }
    if (!waiting.empty()) {
      const Urgent& first = item(waiting.top());
      if (handed.empty() || under_way + first.bytes <= credit) {
        const Seconds begin = handed.empty() ? now : handed.back().first;
        handed.emplace_back(begin + first.duration, first.bytes);
        under_way += first.bytes;
        order.push_back(waiting.top());
        waiting.pop();
        continue;
      }
    }
    // Moves to the next moment at which an item becomes ready or leaves.
    constexpr Seconds kNever = std::numeric_limits<double>::infinity();
    now = std::min(next < coming.size() ? item(coming[next]).ready : kNever,
                   handed.empty() ? kNever : handed.front().first);
  }
  return order;
}

}  // namespace syncline::plan
