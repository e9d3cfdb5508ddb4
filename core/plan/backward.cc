#include "core/plan/backward.h"

#include <algorithm>
#include <utility>

#include "core/collective/price.h"
#include "core/plan/priority.h"

namespace syncline::plan {

std::vector<OpId> Backward::run(std::size_t begin, const Exchanges& exchanges,
                                const std::vector<char>& split) {
  const std::size_t count = exchanges.buckets.size();
  const bool urgent = strategy_.priority == Strategy::Priority::kLayer && build_.plan.ranks > 1;
  std::vector<OpId> done(count);
  awaited_ = 0;
  anew_ = parameters_anew(begin, exchanges, split);
  gathers_.clear();
  gathers_awaited_ = 0;
  OpId segment = static_cast<OpId>(build_.plan.ops.size()) - 1;  // the forward pass
  int next = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const int ready = exchanges.buckets[i].ready;
    std::vector<OpId> needed;
    if (next <= ready) needed = awaited(i, done);
    while (next <= ready) {
      // In pieces where parameters come in on the way.
      fetch(next, segment, needed);
      const bool cut = gathers_awaited_ < anew_.size() && anew_[gathers_awaited_].needed <= ready;
      const int last = cut ? anew_[gathers_awaited_].needed - 1 : ready;
      segment = compute(next, last, std::move(needed));
      needed.clear();
      next = last + 1;
    }
    if (urgent) {
      done[i] = build_.prepare(begin + i, segment);
    } else {
      std::vector<OpId> after{segment};
      if (!exchanges.releases.empty()) after.push_back(tick(exchanges.releases[i]));
      done[i] = first_half(begin + i, begin + i, std::move(after), split[i] != 0, true);
      done[i] = slow_down(begin + i, done[i], next);
    }
  }
  if (!urgent) return done;
  std::size_t place = 0;
  for (const int i : order(begin, exchanges, split)) {
    const auto b = static_cast<std::size_t>(i);
    done[b] = first_half(begin + b, place++, {done[b]}, split[b] != 0, false);
  }
  return done;
}

std::vector<Backward::Anew> Backward::parameters_anew(std::size_t begin, const Exchanges& exchanges,
                                                      const std::vector<char>& split) const {
  std::vector<Anew> list;
  if (!strategy_.regather || build_.plan.ranks == 1) return list;
  if (strategy_.gather_groups.empty()) {
    // A unit's, from the end of the unit before on. The last one's, the root's, were never given
    // up.
    for (std::size_t b = 0; b + 1 < split.size(); ++b) {
      const int needed = b == 0 ? 0 : exchanges.buckets[b - 1].ready + 1;
      if (split[b] != 0) list.push_back({begin + b, needed});
    }
    return list;
  }
  const auto groups = gather_buckets(workload_, strategy_);
  std::vector<char> kept(workload_.tensors.size(), 0);
  for (int g = 0; g < strategy_.kept_groups; ++g) {
    for (const int t : strategy_.gather_groups[static_cast<std::size_t>(g)]) {
      kept[static_cast<std::size_t>(t)] = 1;
    }
  }
  const std::size_t first = build_.plan.buckets.size() - groups.size();
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const auto& tensors = groups[g].tensors;
    const int needed = *std::min_element(tensors.begin(), tensors.end());
    if (kept[static_cast<std::size_t>(needed)] == 0) list.push_back({first + g, needed});
  }
  std::sort(list.begin(), list.end(),
            [](const Anew& a, const Anew& b) { return a.needed < b.needed; });
  return list;
}

std::vector<OpId> Backward::awaited(std::size_t bucket, const std::vector<OpId>& done) {
  std::vector<OpId> after;
  if (build_.plan.ranks == 1) return after;
  const auto in_flight = static_cast<std::size_t>(strategy_.in_flight);
  for (; in_flight > 0 && awaited_ + in_flight < bucket; ++awaited_) {
    after.push_back(done[awaited_]);
  }
  return after;
}

void Backward::fetch(int next, OpId behind, std::vector<OpId>& after) {
  std::size_t needed = gathers_awaited_;
  while (needed < anew_.size() && anew_[needed].needed <= next) ++needed;
  while (gathers_.size() < std::min(needed + 1, anew_.size())) {
    const std::size_t bucket = anew_[gathers_.size()].bucket;
    const auto half = build_.half_of(collective::CollectiveKind::kAllGather, bucket);
    gathers_.push_back(build_.send({half}, build_.stream_of(bucket), {behind}));
  }
  for (; gathers_awaited_ < needed; ++gathers_awaited_) {
    after.push_back(gathers_[gathers_awaited_]);
  }
}

OpId Backward::compute(int first, int last, std::vector<OpId> after) {
  Seconds seconds = 0;
  for (int t = first; t <= last; ++t) {
    seconds += workload_.tensors[static_cast<std::size_t>(t)].backward;
  }
  clock_ += seconds;
  return build_.compute(Phase::kBackward, seconds, first, last, std::move(after));
}

OpId Backward::slow_down(std::size_t bucket, OpId sent, int next) {
  const Overlap& overlap = cluster_.device.overlap;
  if (!overlap.any() || build_.plan.ranks == 1 || !strategy_.overlap) return sent;
  const auto& tensors = workload_.tensors;
  if (rest_.empty()) {
    rest_.assign(tensors.size() + 1, 0);
    for (std::size_t t = tensors.size(); t-- > 0;) rest_[t] = rest_[t + 1] + tensors[t].backward;
  }
  Seconds rest = rest_[std::min(static_cast<std::size_t>(next), tensors.size())];
  if (rest <= 0) return sent;
  rest *= 1 + overlap.slowdown;
  const StreamId stream = build_.plan.ops[static_cast<std::size_t>(sent)].stream;
  const int index = static_cast<int>(bucket);
  sent = build_.add(stream, Slowed{index, overlap.collective_slowdown, overlap.delay, rest});
  // Beside a collective of T seconds, computation gets on as in T / (1 + slowdown).
  build_.add(kComputeStream, Slowed{index, overlap.slowdown / (1 + overlap.slowdown), 0, rest});
  return sent;
}

OpId Backward::first_half(std::size_t bucket, std::size_t place, std::vector<OpId> after,
                          bool split, bool prepare) {
  if (build_.plan.ranks == 1) return after.front();
  if (prepare) after.front() = build_.prepare(bucket, after.front());
  const StreamId stream = build_.stream_of(place);
  if (split) {
    return build_.send({build_.half_of(collective::CollectiveKind::kReduceScatter, bucket)}, stream,
                       std::move(after));
  }
  const auto collectives =
      build_.collectives_of(build_.plan.buckets[bucket], static_cast<int>(bucket));
  return build_.receive(bucket, build_.send(collectives, stream, std::move(after)));
}

OpId Backward::tick(Seconds time) {
  if (first_tick_ < 0) tick_stream_ = build_.plan.streams++;
  if (first_tick_ < 0 || time > tick_time_) {
    tick_ = build_.add(tick_stream_, Wait{time - tick_time_});
    tick_time_ = time;
  }
  if (first_tick_ < 0) first_tick_ = tick_;
  return tick_;
}

std::vector<int> Backward::order(std::size_t begin, const Exchanges& exchanges,
                                 const std::vector<char>& split) {
  collective::PriceBook book(cluster_);
  std::vector<Urgent> items;
  Seconds clock = 0;
  int next = 0;
  for (std::size_t i = 0; i < exchanges.buckets.size(); ++i) {
    const Bucket& bucket = exchanges.buckets[i];
    for (; next <= bucket.ready; ++next) {
      clock += workload_.tensors[static_cast<std::size_t>(next)].backward;
    }
    if (bucket.codec != nullptr) clock += build_.encode_time(bucket);
    // What the forward pass needs first became ready last.
    Urgent item{clock, -bucket.ready, 0, bucket.bytes};
    if (split[i] != 0) {
      item.duration =
          book.time(build_.half_of(collective::CollectiveKind::kReduceScatter, begin + i));
    } else {
      for (const auto& collective : build_.collectives_of(bucket, static_cast<int>(begin + i))) {
        item.duration += book.time(collective);
      }
    }
    items.push_back(item);
  }
  return urgent_first(items, strategy_.credit);
}

}  // namespace syncline::plan
