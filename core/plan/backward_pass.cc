#include "core/plan/backward_pass.h"

#include <algorithm>
#include <utility>

#include "core/base/index.h"
#include "core/plan/fetch_trace.h"

namespace syncline::plan {

BackwardPass::BackwardPass(Builder& build, const Workload& workload,
                           const Communication& communication, std::size_t begin,
                           const std::vector<OpId>& fetched)
    : build_(build),
      workload_(workload),
      communication_(communication),
      begin_(begin),
      asked_(workload.tensors.size()),
      needed_(asked_.size()) {
  for (std::size_t turn = 0; turn < communication.gradients.size(); ++turn) {
    const bool goes_on = bucket(begin + in_turn(turn)).first > 0 && !counted_.empty();
    counted_.push_back(counted_.empty() ? 0 : counted_.back() + (goes_on ? 0 : 1));
  }
  find_parameters_again();
  find_fetches(fetched);
  segment_ = static_cast<OpId>(build.plan.ops.size()) - 1;  // the forward pass
}

std::vector<OpId> BackwardPass::run() {
  const auto& exchanges = communication_.gradients;
  const bool urgent = !communication_.order.empty();
  std::vector<OpId> ready(exchanges.size());
  std::vector<OpId> sent(exchanges.size());
  std::vector<OpId> done(exchanges.size());  // completed operation of each exchange, by turn
  std::size_t reached = 0;
  for (std::size_t turn = 0; turn < exchanges.size(); ++turn) {
    const std::size_t b = in_turn(turn);
    for (; reached <= b; ++reached) {
      const int last = bucket(begin_ + reached).ready;
      if (next_ <= last) pass_to(last, awaited_operations(turn, done));
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

OpId BackwardPass::accumulate() {
  int last = -1;
  for (std::size_t b = 0; b < communication_.gradients.size(); ++b) {
    last = std::max(last, bucket(begin_ + b).ready);
  }
  pass_to(last, {});
  return segment_;
}

std::size_t BackwardPass::in_turn(std::size_t turn) const {
  return communication_.order.empty() ? turn : index(communication_.order[turn]);
}

// Each gather is asked for with the previous one, while that one's backward pass runs.
void BackwardPass::find_parameters_again() {
  // A unit's parameters are needed from the end of the previous unit on.
  int needed = 0;
  for (std::size_t b = 0; b < communication_.gradients.size(); ++b) {
    const BucketExchange& exchange = communication_.gradients[b];
    if (!exchange.regather.empty()) gathers_.push_back({begin_ + b, &exchange.regather, 0, needed});
    needed = std::min(bucket(begin_ + b).ready + 1, static_cast<int>(asked_.size()) - 1);
  }
  const auto& apart = communication_.parameters;
  const std::size_t first = build_.plan.buckets.size() - apart.size();
  for (std::size_t g = 0; g < apart.size(); ++g) {
    if (apart[g].regather.empty()) continue;
    gathers_.push_back({first + g, &apart[g].regather, 0, apart[g].needed});
  }
  std::ranges::stable_sort(gathers_, {}, &Gather::needed);
  for (std::size_t g = 0; g < gathers_.size(); ++g) {
    if (g > 0) gathers_[g].asked = gathers_[g - 1].needed;
    asked_[index(gathers_[g].asked)].push_back(g);
    needed_[index(gathers_[g].needed)].push_back(g);
  }
}

// Adds the backward pass's fetches to the gathers, with the tensors at which they begin and are
// awaited.
void BackwardPass::find_fetches(const std::vector<OpId>& fetched) {
  if (!communication_.fetching) return;
  const auto pass = fetches_of_pass(communication_, workload_.tensors.size(), true, begin_ == 0);
  const std::size_t first = build_.plan.buckets.size() - communication_.parameters.size();
  const std::size_t others = gathers_.size();
  for (std::size_t f = 0; f < communication_.fetches.size(); ++f) {
    const Fetch& fetch = communication_.fetches[f];
    gathers_.push_back({first + fetch.parameters, &fetch.route, 0, 0, fetched[f]});
  }
  for (std::size_t t = 0; t < asked_.size(); ++t) {
    for (const std::size_t f : pass.asked[t]) asked_[t].push_back(others + f);
    for (const std::size_t f : pass.needed[t]) needed_[t].push_back(others + f);
  }
}

// Returns the earlier turns' exchanges that must be over before the pass goes on in a turn.
std::vector<OpId> BackwardPass::awaited_operations(std::size_t turn,
                                                   const std::vector<OpId>& done) {
  std::vector<OpId> after;
  if (build_.plan.ranks == 1) return after;
  const auto in_flight = index(communication_.in_flight);
  const auto over = [&](std::size_t t) { return counted_[t] + in_flight < counted_[turn]; };
  for (; in_flight > 0 && over(awaited_); ++awaited_) after.push_back(done[awaited_]);
  return after;
}

// True if the pass asks for parameters or waits for them before a tensor.
bool BackwardPass::cuts(int tensor) const {
  return !asked_[index(tensor)].empty() || !needed_[index(tensor)].empty();
}

// Adds the pass up to a tensor, in pieces between which parameters arrive; the first piece also
// waits for `after`.
void BackwardPass::pass_to(int ready, std::vector<OpId> after) {
  while (next_ <= ready) {
    gather(after);
    int last = next_;
    Seconds seconds = workload_.tensors[index(last)].backward;
    for (; last < ready && !cuts(last + 1); ++last) {
      seconds += workload_.tensors[index(last + 1)].backward;
    }
    segment_ = build_.compute(Phase::kBackward, seconds, next_, last, std::move(after));
    after.clear();
    next_ = last + 1;
  }
}

// Starts the gathers that the next tensor asks for, after the pass so far. Adds the operations that
// bring in its parameters to `after`.
void BackwardPass::gather(std::vector<OpId>& after) {
  for (const std::size_t g : asked_[index(next_)]) {
    Gather& one = gathers_[g];
    one.op = build_.gather(one.bucket, *one.route, build_.stream_of(one.bucket), {segment_});
  }
  for (const std::size_t g : needed_[index(next_)]) after.push_back(gathers_[g].op);
}

OpId BackwardPass::reduce(std::size_t number, const BucketExchange& exchange, std::size_t place,
                          std::vector<OpId> after, bool prepare) {
  if (build_.plan.ranks == 1) return after.front();
  if (prepare) after.front() = build_.prepare(number, exchange, after.front());
  const OpId sent = build_.send(number, exchange.reduce, build_.stream_of(place), std::move(after));
  return exchange.scattered ? sent : build_.receive(number, exchange, sent);
}

// Returns the tick that releases an exchange: by the clock, or by the rest of the cycle once it is
// ready.
OpId BackwardPass::tick(const BucketExchange& exchange, OpId ready) {
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
