#include "core/plan/backward.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace syncline::plan {
namespace {

std::size_t place_of(int index) { return static_cast<std::size_t>(index); }

}  // namespace

std::vector<OpId> Backward::run(std::size_t begin) {
  const auto& exchanges = communication_.gradients;
  const std::size_t count = exchanges.size();
  const bool urgent = !communication_.order.empty();
  std::vector<OpId> ready(count);
  std::vector<OpId> sent(count);
  awaited_ = 0;
  counted_.clear();
  for (std::size_t b = 0; b < count; ++b) {
    const bool goes_on = bucket(begin + b).first > 0 && !counted_.empty();
    counted_.push_back(counted_.empty() ? 0 : counted_.back() + (goes_on ? 0 : 1));
  }
  again_ = parameters_again(begin);
  kept_ = kept_elements();
  gathers_.clear();
  gathers_awaited_ = 0;
  segment_ = static_cast<OpId>(build_.plan.ops.size()) - 1;  // the forward pass
  next_ = 0;
  std::size_t reached = 0;
  for (std::size_t turn = 0; turn < count; ++turn) {
    const std::size_t b = urgent ? place_of(communication_.order[turn]) : turn;
    for (; reached <= b; ++reached) {
      const int last = bucket(begin + reached).ready;
      if (next_ <= last) pass_to(last, awaited(reached, urgent ? ready : sent));
      ready[reached] =
          urgent ? build_.prepare(begin + reached, exchanges[reached], segment_) : segment_;
    }
    std::vector<OpId> after{ready[b]};
    if (!urgent && exchanges[b].release >= 0) after.push_back(tick(exchanges[b].release));
    const std::size_t place = urgent ? turn : begin + b;
    sent[b] = reduce(begin + b, exchanges[b], place, std::move(after), !urgent);
  }
  return sent;
}

void Backward::pass_to(int ready, std::vector<OpId> after) {
  while (next_ <= ready) {
    std::size_t needed = gathers_awaited_;
    while (needed < again_.size() && again_[needed].needed <= next_) ++needed;
    const bool cut = needed < again_.size() && again_[needed].needed <= ready;
    const int last = cut ? again_[needed].needed - 1 : ready;
    fetch(needed, after);
    segment_ = compute(next_, last, std::move(after));
    after.clear();
    next_ = last + 1;
  }
}

std::vector<Backward::Again> Backward::parameters_again(std::size_t begin) const {
  std::vector<Again> list;
  // A unit's, from the end of the unit before on.
  int needed = 0;
  for (std::size_t b = 0; b < communication_.gradients.size(); ++b) {
    const Exchange& exchange = communication_.gradients[b];
    if (!exchange.again.empty()) list.push_back({begin + b, &exchange, needed});
    needed = bucket(begin + b).ready + 1;
  }
  const auto& apart = communication_.parameters;
  const std::size_t first = build_.plan.buckets.size() - apart.size();
  for (std::size_t g = 0; g < apart.size(); ++g) {
    const auto& tensors = bucket(first + g).tensors;
    if (apart[g].again.empty()) continue;
    list.push_back({first + g, &apart[g], *std::min_element(tensors.begin(), tensors.end())});
  }
  std::stable_sort(list.begin(), list.end(),
                   [](const Again& a, const Again& b) { return a.needed < b.needed; });
  return list;
}

std::vector<OpId> Backward::awaited(std::size_t exchange, const std::vector<OpId>& done) {
  std::vector<OpId> after;
  if (build_.plan.ranks == 1) return after;
  const auto in_flight = static_cast<std::size_t>(communication_.in_flight);
  const auto over = [&](std::size_t b) { return counted_[b] + in_flight < counted_[exchange]; };
  for (; in_flight > 0 && over(awaited_); ++awaited_) after.push_back(done[awaited_]);
  return after;
}

void Backward::fetch(std::size_t needed, std::vector<OpId>& after) {
  const std::size_t ahead = room_ahead(next_, needed) ? 1 : 0;
  while (gathers_.size() < std::min(needed + ahead, again_.size())) {
    const auto& [index, exchange, tensor] = again_[gathers_.size()];
    gathers_.push_back(build_.gather(index, exchange->again, build_.stream_of(index), {segment_}));
  }
  for (; gathers_awaited_ < needed; ++gathers_awaited_) {
    after.push_back(gathers_[gathers_awaited_]);
  }
}

std::vector<std::int64_t> Backward::kept_elements() const {
  std::vector<char> again(workload_.tensors.size(), 0);
  for (const Again& one : again_) {
    for (const int t : bucket(one.bucket).tensors) again[place_of(t)] = 1;
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
  if (communication_.live_elements == 0) return true;
  std::int64_t live = kept_[place_of(next)];
  for (std::size_t g = 0; g < needed; ++g) {
    const Bucket& gathered = bucket(again_[g].bucket);
    const auto& tensors = gathered.tensors;
    if (*std::max_element(tensors.begin(), tensors.end()) >= next) live += gathered.elements;
  }
  return live < communication_.live_elements;
}

OpId Backward::compute(int first, int last, std::vector<OpId> after) {
  Seconds seconds = 0;
  for (int t = first; t <= last; ++t) {
    seconds += workload_.tensors[static_cast<std::size_t>(t)].backward;
  }
  return build_.compute(Phase::kBackward, seconds, first, last, std::move(after));
}

OpId Backward::reduce(std::size_t index, const Exchange& exchange, std::size_t place,
                      std::vector<OpId> after, bool prepare) {
  if (build_.plan.ranks == 1) return after.front();
  if (prepare) after.front() = build_.prepare(index, exchange, after.front());
  const OpId sent = build_.send(index, exchange.reduce, build_.stream_of(place), std::move(after));
  return exchange.scattered ? sent : build_.receive(index, exchange, sent);
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

}  // namespace syncline::plan
