#include "core/plan/forward_pass.h"

#include <algorithm>
#include <limits>
#include <string>

#include "core/base/index.h"
#include "core/plan/fusion.h"

namespace syncline::plan {

std::vector<ForwardLayer> forward_layers(const Workload& workload) {
  const auto times = forward_times(workload);
  std::vector<ForwardLayer> layers;
  std::string open;
  for (int i = static_cast<int>(workload.tensors.size()) - 1; i >= 0; --i) {
    const std::size_t place = index(i);
    std::string name = layer_of(workload.tensors[place].name, Fusion::LayerKey::kLastDot);
    if (layers.empty() || name != open) layers.push_back({i, i, 0});
    open = std::move(name);
    layers.back().first = i;
    layers.back().seconds += times[place];
  }
  return layers;
}

bool gathers_in_forward(const Communication& communication) {
  return communication.shards > 1 && communication.cross_step && communication.live_elements > 0;
}

ForwardPass::ForwardPass(Builder& build, const Workload& workload,
                         const Communication& communication, const StepBuckets& buckets)
    : build_(build),
      workload_(workload),
      communication_(communication),
      buckets_(buckets),
      sharded_(communication.shards > 1) {}

void ForwardPass::begin_step() {
  build_.begin_step();
  if (gathers_in_forward(communication_)) return gathered({});
  if (!communication_.cross_step) return whole();
  for (const Segment& segment : segments()) updated(segment);
}

void ForwardPass::again(const std::vector<OpId>& done) {
  if (sharded_ && communication_.cross_step) return gathered(done);
  build_.compute(Phase::kForward, workload_.forward, 0, -1, done);
}

// Puts the pass as one piece, which waits for all that is gathered.
void ForwardPass::whole() {
  const OpId op = build_.compute(Phase::kForward, workload_.forward);
  if (!sharded_) return;
  auto& awaited = waits_.emplace_back(op, std::vector<std::size_t>{}).buckets;
  for (std::size_t t = 0; t < workload_.tensors.size(); ++t) {
    const auto& own = buckets_.bringing(t);
    awaited.insert(awaited.end(), own.begin(), own.end());
  }
}

// Puts a segment behind the update of its parameters.
void ForwardPass::updated(const Segment& segment) {
  OpId lead = -1;
  double share = 0;
  for (const auto b : segment.awaited) {
    share += b < buckets_.gradients() ? buckets_.share_of_update(b) : 0;
  }
  const ForwardLayer& layers = segment.layers;
  copy_out_of_last_step(segment.awaited);
  if (!sharded_ && workload_.update > 0 && share > 0) {
    lead = build_.compute(Phase::kUpdate, workload_.update * share, layers.first, layers.last);
  }
  const OpId op = build_.compute(Phase::kForward, layers.seconds, layers.first, layers.last);
  if (!segment.awaited.empty()) waits_.push_back({lead < 0 ? op : lead, segment.awaited});
}

// Copies buckets out once they have arrived, ahead of the layers that need them.
void ForwardPass::copy_out_of_last_step(const std::vector<std::size_t>& awaited) {
  for (const auto b : awaited) {
    const Seconds seconds = buckets_.exchange(b).copy_out;
    if (sharded_ || seconds <= 0) continue;
    const Busy copy{Busy::Reason::kCopyOut, seconds, static_cast<int>(buckets_.in_plan(b))};
    waits_.push_back({build_.add(kComputeStream, copy), {b}});
  }
}

// Cuts the pass where a layer needs buckets that no layer before it did.
std::vector<ForwardPass::Segment> ForwardPass::segments() const {
  std::vector<Segment> list;
  std::vector<char> seen(buckets_.count(), 0);
  for (const auto& layer : forward_layers(workload_)) {
    std::vector<std::size_t> fresh;
    const auto awaits = [&](std::size_t b) {
      if (std::exchange(seen[b], 1) == 0) fresh.push_back(b);
    };
    for (const auto b : buckets_.ahead()) {
      if (buckets_.bucket(b).ready >= layer.first) awaits(b);
    }
    for (int t = layer.first; t <= layer.last; ++t) {
      std::ranges::for_each(buckets_.bringing(index(t)), awaits);
    }
    if (fresh.empty() && !list.empty()) {
      list.back().layers.first = layer.first;
      list.back().layers.seconds += layer.seconds;
      continue;
    }
    list.push_back({layer, std::move(fresh)});
  }
  return list;
}

// Counts the elements that are given up behind each segment: those of buckets that no later one
// needs and that are gathered again for the backward pass.
std::vector<std::int64_t> ForwardPass::given_up_behind(const std::vector<Segment>& list) const {
  std::vector<std::int64_t> elements(list.size(), 0);
  for (std::size_t b = 0; b < buckets_.count(); ++b) {
    if (buckets_.exchange(b).again.empty()) continue;
    const int lowest = std::ranges::min(buckets_.bucket(b).tensors);
    // Segments walk the tensors from the last to the first.
    const auto own = std::ranges::find_if(
        list, [&](const Segment& segment) { return segment.layers.first <= lowest; });
    if (own != list.end()) elements[index(own - list.begin())] += buckets_.bucket(b).elements;
  }
  return elements;
}

// Lists the buckets that are gathered, in the order in which segments need them.
std::vector<ForwardPass::Needed> ForwardPass::gathered_for(const std::vector<Segment>& list) const {
  std::vector<Needed> queue;
  for (std::size_t s = 0; s < list.size(); ++s) {
    for (const auto b : list[s].awaited) {
      if (is_gathered(b)) queue.push_back({s, b});
    }
  }
  return queue;
}

// Puts the pass with its gathers, behind `begun`, or behind the step before where that is empty. A
// bucket is asked for where there is room for it, at the latest when the segment ahead of its own
// is done.
void ForwardPass::gathered(const std::vector<OpId>& begun) {
  const auto list = segments();
  const auto given_up = given_up_behind(list);
  const auto queue = gathered_for(list);
  const std::int64_t room = communication_.live_elements > 0
                                ? communication_.live_elements
                                : std::numeric_limits<std::int64_t>::max();
  std::vector<std::vector<OpId>> brought(list.size());
  brought.front() = begun;
  std::vector<OpId> ahead = begun;
  std::int64_t live = 0;
  std::size_t asked = 0;
  for (std::size_t s = 0; s < list.size(); ++s) {
    const ForwardLayer& layers = list[s].layers;
    for (; asked < queue.size() && (queue[asked].segment <= s || live < room); ++asked) {
      const auto [segment, b] = queue[asked];
      brought[segment].push_back(gather(b, asked, ahead, begun.empty()));
      live += buckets_.bucket(b).elements;
    }
    const OpId op = build_.compute(Phase::kForward, layers.seconds, layers.first, layers.last,
                                   std::move(brought[s]));
    for (const auto b : list[s].awaited) {
      if (begun.empty() && !is_gathered(b)) waits_.push_back({op, {b}});
    }
    ahead = {op};
    live -= given_up[s];
  }
}

// Gathers one bucket's parameters behind `ahead`, and behind their update where that is the step's
// before. Returns the operation that brings them in.
OpId ForwardPass::gather(std::size_t b, std::size_t place, const std::vector<OpId>& ahead,
                         bool updated_before) {
  const Exchange& exchange = buckets_.exchange(b);
  const std::size_t number = buckets_.in_plan(b);
  const OpId sent = build_.gather(number, exchange.gather, build_.stream_of(place), ahead);
  if (updated_before) waits_.push_back({sent, buckets_.updating(b)});
  return build_.receive(number, exchange, sent);
}

}  // namespace syncline::plan
