#include "core/plan/backward_pass.h"

#include <algorithm>
#include <utility>

#include "core/base/index.h"

namespace syncline::plan {

BackwardPass::BackwardPass(Builder& build, const Workload& workload,
                           const Communication& communication, std::size_t begin)
    : build_(build), workload_(workload), communication_(communication), begin_(begin) {
  for (std::size_t turn = 0; turn < communication.gradients.size(); ++turn) {
    const bool goes_on = bucket(begin + in_turn(turn)).first > 0 && !counted_.empty();
    counted_.push_back(counted_.empty() ? 0 : counted_.back() + (goes_on ? 0 : 1));
  }
  find_parameters_again();
  find_kept_elements();
  segment_ = static_cast<OpId>(build.plan.ops.size()) - 1;  // the forward pass
}

std::vector<OpId> BackwardPass::run() {
  const auto& exchanges = communication_.gradients;
  const bool urgent = !communication_.order.empty();
  std::vector<OpId> ready(exchanges.size());
  std::vector<OpId> sent(exchanges.size());
  std::vector<OpId> done(exchanges.size());  // likewise, by turn
  std::size_t reached = 0;
  for (std::size_t turn = 0; turn < exchanges.size(); ++turn) {
    const std::size_t b = in_turn(turn);
    for (; reached <= b; ++reached) {
      const int last = bucket(begin_ + reached).ready;
      if (next_ <= last) pass_to(last, awaited(turn, done));
      ready[reached] =
          urgent ? build_.prepare(begin_ + reached, exchanges[reached], segment_) : segment_;
    }
    std::vector<OpId> after{ready[b]};
    if (exchanges[b].release >= 0) after.push_back(tick(exchanges[b], ready[b]));
    const std::size_t place = urgent ? turn : begin_ + b;
    sent[b] = done[turn] = reduce(begin_ + b, exchanges[b], place, std::move(after), !urgent);
  }
  return sent;
}

std::size_t BackwardPass::in_turn(std::size_t turn) const {
  return communication_.order.empty() ? turn : index(communication_.order[turn]);
}

void BackwardPass::find_parameters_again() {
  // A unit's, from the end of the unit before on.
  int needed = 0;
  for (std::size_t b = 0; b < communication_.gradients.size(); ++b) {
    const Exchange& exchange = communication_.gradients[b];
    if (!exchange.again.empty()) again_.push_back({begin_ + b, &exchange, needed});
    needed = bucket(begin_ + b).ready + 1;
  }
  const auto& apart = communication_.parameters;
  const std::size_t first = build_.plan.buckets.size() - apart.size();
  for (std::size_t g = 0; g < apart.size(); ++g) {
    if (apart[g].again.empty()) continue;
    again_.push_back({first + g, &apart[g], apart[g].needed});
  }
  std::ranges::stable_sort(again_, {}, &Again::needed);
}

void BackwardPass::find_kept_elements() {
  std::vector<char> again(workload_.tensors.size(), 0);
  for (const Again& one : again_) {
    for (const int t : bucket(one.bucket).tensors) again[index(t)] = 1;
  }
  kept_.assign(workload_.tensors.size() + 1, 0);
  for (std::size_t t = workload_.tensors.size(); t-- > 0;) {
    const Tensor& tensor = workload_.tensors[t];
    const bool kept = again[t] == 0 && !tensor.sparse;
    kept_[t] = kept_[t + 1] + (kept ? tensor.elements : 0);
  }
}

// Says if parameters may be gathered beside those that the pass holds, the first `needed` of
// again_ among them.
bool BackwardPass::room_ahead(std::size_t needed) const {
  if (communication_.live_elements == 0) return true;
  std::int64_t live = kept_[index(next_)];
  for (std::size_t g = 0; g < needed; ++g) {
    const Bucket& gathered = bucket(again_[g].bucket);
    if (std::ranges::max(gathered.tensors) >= next_) live += gathered.elements;
  }
  return live < communication_.live_elements;
}

// Returns those exchanges of the turns before that must be over when the pass goes on in a turn.
std::vector<OpId> BackwardPass::awaited(std::size_t turn, const std::vector<OpId>& done) {
  std::vector<OpId> after;
  if (build_.plan.ranks == 1) return after;
  const auto in_flight = index(communication_.in_flight);
  const auto over = [&](std::size_t t) { return counted_[t] + in_flight < counted_[turn]; };
  for (; in_flight > 0 && over(awaited_); ++awaited_) after.push_back(done[awaited_]);
  return after;
}

// Puts the pass up to a tensor, in pieces where parameters come in on the way; the first waits for
// `after` too.
void BackwardPass::pass_to(int ready, std::vector<OpId> after) {
  while (next_ <= ready) {
    std::size_t needed = gathers_awaited_;
    while (needed < again_.size() && again_[needed].needed <= next_) ++needed;
    const bool cut = needed < again_.size() && again_[needed].needed <= ready;
    const int last = cut ? again_[needed].needed - 1 : ready;
    fetch(needed, after);
    Seconds seconds = 0;
    for (int t = next_; t <= last; ++t) seconds += workload_.tensors[index(t)].backward;
    segment_ = build_.compute(Phase::kBackward, seconds, next_, last, std::move(after));
    after.clear();
    next_ = last + 1;
  }
}

// Gathers, behind the pass so far, the first `needed` of again_, and the next one if there is room.
// Adds the operations that bring in the former to `after`.
void BackwardPass::fetch(std::size_t needed, std::vector<OpId>& after) {
  const std::size_t ahead = room_ahead(needed) ? 1 : 0;
  while (gathers_.size() < std::min(needed + ahead, again_.size())) {
    const auto& [number, exchange, tensor] = again_[gathers_.size()];
    const StreamId stream = build_.stream_of(number);
    gathers_.push_back(build_.gather(number, exchange->again, stream, {segment_}));
  }
  for (; gathers_awaited_ < needed; ++gathers_awaited_) {
    after.push_back(gathers_[gathers_awaited_]);
  }
}

OpId BackwardPass::reduce(std::size_t number, const Exchange& exchange, std::size_t place,
                          std::vector<OpId> after, bool prepare) {
  if (build_.plan.ranks == 1) return after.front();
  if (prepare) after.front() = build_.prepare(number, exchange, after.front());
  const OpId sent = build_.send(number, exchange.reduce, build_.stream_of(place), std::move(after));
  return exchange.scattered ? sent : build_.receive(number, exchange, sent);
}

// Returns the tick that releases an exchange: by the clock, or by the rest of the cycle once it is
// ready.
OpId BackwardPass::tick(const Exchange& exchange, OpId ready) {
  if (tick_ >= 0 && exchange.release <= tick_time_) return tick_;
  if (build_.tick_stream == 0) build_.tick_stream = build_.plan.streams++;
  const bool by_clock = communication_.by_clock;
  const Seconds from = by_clock ? tick_time_ : std::max(tick_time_, exchange.expected);
  tick_ = build_.add(build_.tick_stream, Busy{Busy::Reason::kTick, exchange.release - from},
                     by_clock ? std::vector<OpId>{} : std::vector{ready});
  tick_time_ = exchange.release;
  if (by_clock && first_tick_ < 0) first_tick_ = tick_;
  return tick_;
}

}  // namespace syncline::plan
