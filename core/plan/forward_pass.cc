#include "core/plan/forward_pass.h"

#include <algorithm>
#include <string>

#include "core/base/index.h"
#include "core/plan/fetch_trace.h"
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

ForwardPass::ForwardPass(Builder& build, const Workload& workload,
                         const Communication& communication, const StepBuckets& buckets)
    : build_(build),
      workload_(workload),
      communication_(communication),
      buckets_(buckets),
      sharded_(communication.shards > 1) {}

void ForwardPass::begin_step() {
  build_.begin_step();
  if (communication_.fetching) return fetching({});
  if (!communication_.cross_step) return whole();
  for (const Segment& segment : segments()) add_updated_segment(segment);
}

void ForwardPass::again(const std::vector<OpId>& done) {
  if (communication_.fetching) return fetching(done);
  if (sharded_ && communication_.cross_step) return add_gathering_pass(done);
  build_.compute(Phase::kForward, workload_.forward, 0, -1, done);
}

// Adds the pass as one piece, which waits for all gathers.
void ForwardPass::whole() {
  const OpId op = build_.compute(Phase::kForward, workload_.forward);
  if (!sharded_) return;
  auto& awaited = waits_.emplace_back(NextStepWait{op, {}}).buckets;
  for (std::size_t t = 0; t < workload_.tensors.size(); ++t) {
    const auto& own = buckets_.bringing(t);
    awaited.insert(awaited.end(), own.begin(), own.end());
  }
}

// Adds a segment after the update of its parameters.
void ForwardPass::add_updated_segment(const Segment& segment) {
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

// Copies buckets out once they have arrived, before the layers that need them.
void ForwardPass::copy_out_of_last_step(const std::vector<std::size_t>& awaited) {
  for (const auto b : awaited) {
    const Seconds seconds = buckets_.exchange(b).copy_out;
    if (sharded_ || seconds <= 0) continue;
    const Busy copy{Busy::Reason::kCopyOut, seconds, static_cast<int>(buckets_.in_plan(b))};
    waits_.push_back({build_.add(kComputeStream, copy), {b}});
  }
}

// Cuts the pass before each layer that needs buckets not needed so far.
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

// Adds the pass of a later micro-batch with its gathers, which all start after `begun`.
void ForwardPass::add_gathering_pass(const std::vector<OpId>& begun) {
  const auto list = segments();
  std::vector<std::vector<OpId>> brought(list.size());
  brought.front() = begun;
  std::size_t asked = 0;
  for (std::size_t s = 0; s < list.size(); ++s) {
    for (const auto b : list[s].awaited) {
      if (is_gathered(b)) brought[s].push_back(gather(b, asked++, begun));
    }
  }
  for (std::size_t s = 0; s < list.size(); ++s) {
    const ForwardLayer& layers = list[s].layers;
    build_.compute(Phase::kForward, layers.seconds, layers.first, layers.last,
                   std::move(brought[s]));
  }
}

// Gathers one bucket's parameters after `ahead`. Returns the operation that brings them in.
OpId ForwardPass::gather(std::size_t b, std::size_t place, std::vector<OpId> ahead) {
  const BucketExchange& exchange = buckets_.exchange(b);
  const std::size_t number = buckets_.in_plan(b);
  const OpId sent =
      build_.gather(number, exchange.gather, build_.stream_of(place), std::move(ahead));
  return build_.receive(number, exchange, sent);
}

// Adds the pass after `begun`, or after the previous step if that is empty. It is cut at layers
// that wait for parameters or ask for them; these gathers follow the layers so far.
void ForwardPass::fetching(const std::vector<OpId>& begun) {
  const bool first = begun.empty();
  const auto fetches = fetches_of_pass(communication_, workload_.tensors.size(), false, first);
  const auto layers = forward_layers(workload_);
  fetched_.assign(communication_.fetches.size(), -1);
  std::vector<OpId> ahead = begun;
  for (std::size_t l = 0; l < layers.size();) {
    ForwardLayer piece = layers[l];
    const std::size_t here = index(piece.last);
    const bool begins = l == 0;
    for (++l; l < layers.size() && !fetches.any(index(layers[l].last)); ++l) {
      piece.first = layers[l].first;
      piece.seconds += layers[l].seconds;
    }
    for (const std::size_t f : fetches.asked[here]) {
      fetched_[f] = fetch(communication_.fetches[f], ahead, first);
    }
    std::vector<OpId> after = begins ? begun : std::vector<OpId>{};
    for (const std::size_t f : fetches.needed[here]) after.push_back(fetched_[f]);
    const OpId op =
        build_.compute(Phase::kForward, piece.seconds, piece.first, piece.last, std::move(after));
    if (first && begins) waits_.push_back({op, first_pass_buckets()});
    ahead = {op};
  }
}

// Returns the buckets that bring parameters after the update and stay in place.
std::vector<std::size_t> ForwardPass::first_pass_buckets() const {
  std::vector<std::size_t> list;
  for (std::size_t t = 0; t < workload_.tensors.size(); ++t) {
    for (const auto b : buckets_.bringing(t)) {
      if (b < buckets_.gradients() || is_gathered(b)) list.push_back(b);
    }
  }
  keep_each_once(list);
  return list;
}

// Gathers parameters after `ahead`, and in a step's first pass after their update.
OpId ForwardPass::fetch(const Fetch& fetch, std::vector<OpId> ahead, bool updated_before) {
  const std::size_t b = buckets_.gradients() + fetch.parameters;
  const std::size_t number = buckets_.in_plan(b);
  const OpId sent = build_.gather(number, fetch.route, build_.stream_of(number), std::move(ahead));
  if (updated_before) waits_.push_back({sent, buckets_.updating(b)});
  return sent;
}

}  // namespace syncline::plan
