#include "core/plan/backward.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/collective/price.h"
#include "core/plan/priority.h"

namespace syncline::plan {
namespace {

std::size_t place_of(int index) { return static_cast<std::size_t>(index); }

}  // namespace

Backward::Backward(Builder& build, const Workload& workload, const Cluster& cluster,
                   const Strategy& strategy)
    : build_(build), workload_(workload), cluster_(cluster), strategy_(strategy) {}

std::vector<OpId> Backward::run(std::size_t begin, const Exchanges& exchanges,
                                const std::vector<char>& split) {
  const std::size_t count = exchanges.buckets.size();
  const bool urgent = strategy_.priority == Strategy::Priority::kLayer && build_.plan.ranks > 1;
  std::vector<OpId> ready(count);
  std::vector<OpId> sent(count);
  awaited_ = 0;
  counted_.clear();
  for (const Bucket& bucket : exchanges.buckets) {
    const bool goes_on = bucket.first > 0 && !counted_.empty();
    counted_.push_back(counted_.empty() ? 0 : counted_.back() + (goes_on ? 0 : 1));
  }
  anew_ = parameters_anew(begin, exchanges, split);
  kept_ = kept_elements();
  gathers_.clear();
  gathers_awaited_ = 0;
  segment_ = static_cast<OpId>(build_.plan.ops.size()) - 1;  // the forward pass
  next_ = 0;
  std::size_t reached = 0;
  std::vector<int> turns(count);
  std::iota(turns.begin(), turns.end(), 0);
  if (urgent) turns = order(begin, exchanges, split);
  for (std::size_t turn = 0; turn < count; ++turn) {
    const std::size_t b = place_of(turns[turn]);
    for (; reached <= b; ++reached) {
      const int last = exchanges.buckets[reached].ready;
      if (next_ <= last) pass_to(last, awaited(reached, urgent ? ready : sent));
      ready[reached] = urgent ? build_.prepare(begin + reached, segment_) : segment_;
    }
    std::vector<OpId> after{ready[b]};
    if (!urgent && !exchanges.releases.empty()) after.push_back(tick(exchanges.releases[b]));
    const std::size_t place = urgent ? turn : begin + b;
    sent[b] = first_half(begin + b, place, std::move(after), split[b] != 0, !urgent);
  }
  return sent;
}

void Backward::pass_to(int ready, std::vector<OpId> after) {
  while (next_ <= ready) {
    std::size_t needed = gathers_awaited_;
    while (needed < anew_.size() && anew_[needed].needed <= next_) ++needed;
    const bool cut = needed < anew_.size() && anew_[needed].needed <= ready;
    const int last = cut ? anew_[needed].needed - 1 : ready;
    fetch(needed, after);
    segment_ = compute(next_, last, std::move(after));
    after.clear();
    next_ = last + 1;
  }
}

std::vector<Backward::Anew> Backward::parameters_anew(std::size_t begin, const Exchanges& exchanges,
                                                      const std::vector<char>& split) const {
  std::vector<Anew> list;
  if (!strategy_.regather || shard_ranks(strategy_, build_.plan.ranks) == 1) return list;
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
  const auto over = [&](std::size_t b) { return counted_[b] + in_flight < counted_[bucket]; };
  for (; in_flight > 0 && over(awaited_); ++awaited_) after.push_back(done[awaited_]);
  return after;
}

void Backward::fetch(std::size_t needed, std::vector<OpId>& after) {
  const std::size_t ahead = room_ahead(next_, needed) ? 1 : 0;
  while (gathers_.size() < std::min(needed + ahead, anew_.size())) {
    const std::size_t bucket = anew_[gathers_.size()].bucket;
    gathers_.push_back(build_.gather(bucket, build_.stream_of(bucket), {segment_}, true));
  }
  for (; gathers_awaited_ < needed; ++gathers_awaited_) {
    after.push_back(gathers_[gathers_awaited_]);
  }
}

std::vector<std::int64_t> Backward::kept_elements() const {
  std::vector<char> again(workload_.tensors.size(), 0);
  for (const Anew& anew : anew_) {
    for (const int t : build_.plan.buckets[anew.bucket].tensors) again[place_of(t)] = 1;
  }
  std::vector<std::int64_t> behind(workload_.tensors.size() + 1, 0);
  for (std::size_t t = workload_.tensors.size(); t-- > 0;) {
    const Tensor& tensor = workload_.tensors[t];
    const bool kept = again[t] == 0 && !tensor.sparse;
    behind[t] = behind[t + 1] + (kept ? tensor.elements : 0);
  }
  return behind;
}

bool Backward::room_ahead(int next, std::size_t needed) const {
  if (strategy_.live_elements == 0) return true;
  std::int64_t live = kept_[place_of(next)];
  for (std::size_t g = 0; g < needed; ++g) {
    const Bucket& bucket = build_.plan.buckets[anew_[g].bucket];
    const auto& tensors = bucket.tensors;
    if (*std::max_element(tensors.begin(), tensors.end()) >= next) live += bucket.elements;
  }
  return live < strategy_.live_elements;
}

OpId Backward::compute(int first, int last, std::vector<OpId> after) {
  Seconds seconds = 0;
  for (int t = first; t <= last; ++t) {
    seconds += workload_.tensors[static_cast<std::size_t>(t)].backward;
  }
  return build_.compute(Phase::kBackward, seconds, first, last, std::move(after));
}

OpId Backward::first_half(std::size_t bucket, std::size_t place, std::vector<OpId> after,
                          bool split, bool prepare) {
  if (build_.plan.ranks == 1) return after.front();
  if (prepare) after.front() = build_.prepare(bucket, after.front());
  const StreamId stream = build_.stream_of(place);
  if (split) {
    return build_.send(build_.scattered(bucket), stream, std::move(after));
  }
  const auto collectives = build_.in_micro_batch(
      build_.collectives_of(build_.plan.buckets[bucket], static_cast<int>(bucket)));
  return build_.receive(bucket, build_.send(collectives, stream, std::move(after)));
}

OpId Backward::tick(Seconds time) {
  if (first_tick_ < 0) tick_stream_ = build_.plan.streams++;
  if (first_tick_ < 0 || time > tick_time_) {
    tick_ = build_.add(tick_stream_, Busy{Busy::Reason::kTick, time - tick_time_});
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
    for (const auto& collective :
         split[i] != 0 ? build_.scattered(begin + i)
                       : build_.collectives_of(bucket, static_cast<int>(begin + i))) {
      item.duration += book.time(collective);
    }
    items.push_back(item);
  }
  return urgent_first(items, strategy_.credit);
}

}  // namespace syncline::plan
