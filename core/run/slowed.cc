#include "core/run/slowed.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/plan/sums.h"

namespace syncline::run {
namespace {

// When a bucket's exchange is under way, and, where its sums are taken in software, what it asks of
// the processor that computes.
struct Window {
  Seconds begin = std::numeric_limits<double>::infinity();
  Seconds end = 0;
  Seconds flow = 0;       // of the bytes
  double busy = 0;        // what they take of the processor
  Seconds sums = 0;       // work of the processor
  Seconds decoding = 0;   // likewise
  Seconds contended = 0;  // what both take longer beside computation than alone
  double taken = 0;       // of the processor, beside computation
};

struct Stretch {
  Seconds begin = 0;
  Seconds end = 0;
};

// One pass over a period: each operation begins when its stream and what it waits for are done.
class Pass {
 public:
  Pass(plan::Plan& plan, collective::PriceBook& book)
      : plan_(plan),
        book_(book),
        ends_(plan.ops.size(), 0),
        ends_before_(plan.ops.size(), 0),
        free_(static_cast<std::size_t>(plan.streams), 0),
        windows_(plan.buckets.size()) {}

  void fill() {
    for (std::size_t i = 0; i < plan_.ops.size(); ++i) {
      plan::Op& op = plan_.ops[i];
      Seconds& free = free_[static_cast<std::size_t>(op.stream)];
      Seconds begin = free;
      for (const plan::OpId id : op.after) {
        begin = std::max(begin, ends_[static_cast<std::size_t>(id)]);
      }
      for (const plan::OpId id : op.after_previous) {
        begin = std::max(begin, ends_before_[static_cast<std::size_t>(id)]);
      }
      free = ends_[i] = begin + duration(op, begin);
    }
  }

  // What the period leaves under way when the next one's computation may begin, which is then.
  void turn_over() {
    const Seconds period = free_[plan::kComputeStream];
    for (Seconds& end : ends_) end = std::max(0.0, end - period);
    ends_before_ = std::exchange(ends_, std::vector<Seconds>(ends_.size(), 0));
    for (Seconds& free : free_) free = std::max(0.0, free - period);
    under_way_before_.clear();
    for (const Window& window : windows_) {
      if (window.end <= period) continue;
      under_way_before_.push_back(window);
      under_way_before_.back().begin -= period;
      under_way_before_.back().end -= period;
    }
    std::sort(under_way_before_.begin(), under_way_before_.end(),
              [](const Window& a, const Window& b) { return a.begin < b.begin; });
    windows_.assign(windows_.size(), {});
    past_ = 0;
    forward_.clear();
    repeated_ = true;
  }

 private:
  Seconds duration(plan::Op& op, Seconds begin) {
    if (const auto* collective = std::get_if<collective::Collective>(&op.work)) {
      return exchange(*collective, begin);
    }
    if (auto* sums = std::get_if<plan::Sums>(&op.work)) return summed(*sums);
    if (const auto* decode = std::get_if<plan::Decode>(&op.work)) return decoded(*decode);
    if (op.stream == plan::kComputeStream) under_way_ = -1;
    auto* slowed = std::get_if<plan::Slowed>(&op.work);
    if (slowed == nullptr) return plan::seconds_of(op.work);
    if (!slowed->bucket) {
      slowed->seconds = lost_to_step_before(*slowed, begin);
      if (repeated_) forward_.push_back({begin + slowed->rest, begin + slowed->seconds});
      return slowed->seconds;
    }
    Window& window = windows_[static_cast<std::size_t>(*slowed->bucket)];
    if (op.stream == plan::kComputeStream) {
      slowed->seconds = lost(*slowed, window, begin);
    } else if (slowed->delay > 0) {
      slowed->seconds =
          slowed->rest == 0 ? waits_for_next_step(*slowed, begin) : waits(*slowed, begin);
    } else {
      slowed->seconds =
          slowed->rest == 0 ? longer_by_next_step(*slowed, window) : longer(*slowed, window);
    }
    return slowed->seconds;
  }

  Window& window_of(int bucket) { return windows_[static_cast<std::size_t>(bucket)]; }

  Seconds exchange(const collective::Collective& collective, Seconds begin) {
    flow_ = book_.time(collective);
    Window& window = window_of(collective.bucket);
    // Parameters that were gathered for the pass are another exchange than their gradients.
    if (std::exchange(under_way_, collective.bucket) != collective.bucket) window = {};
    window.begin = std::min(window.begin, begin);
    window.end = begin + flow_;
    window.flow += flow_;
    return flow_;
  }

  // Behind the collective that they belong to.
  Seconds summed(plan::Sums& sums) {
    sums.seconds = plan::beyond(sums, flow_);
    Window& window = window_of(sums.bucket);
    window.sums += sums.work;
    window.busy = sums.busy;
    window.contended += plan::beyond(sums, flow_, kShared) - sums.seconds;
    window.end += sums.seconds;
    return sums.seconds;
  }

  // Where sums are, work of the processor like them.
  Seconds decoded(const plan::Decode& decode) {
    Window& window = window_of(decode.bucket);
    if (window.sums > 0) {
      window.decoding += decode.seconds;
      window.contended += (kShared - 1) * decode.seconds;
      window.end += decode.seconds;
    }
    return decode.seconds;
  }

  // By the computation, from this moment on or up to it. Up to the exchange it loses nothing to it.
  static Seconds lost(const plan::Slowed& slowed, const Window& window, Seconds now) {
    const double share = window.sums > 0 ? window.taken : slowed.share;
    if (slowed.rest < 0) {
      const Seconds from = now + slowed.rest * times_longer(share);
      const Seconds beside = std::min(window.end, now) - std::max(window.begin, from);
      return share * std::max(0.0, beside);
    }
    const Seconds begin = std::max(window.begin, now);
    const Seconds left = (now + slowed.rest - begin) * times_longer(share);
    return share * std::max(0.0, std::min(window.end - begin, left));
  }

  // By computation that took -rest up to this moment, had nothing run beside it.
  Seconds lost_to_step_before(const plan::Slowed& slowed, Seconds now) {
    const Seconds clock = now + slowed.rest;
    while (past_ < under_way_before_.size() && under_way_before_[past_].end <= clock) ++past_;
    const auto first = under_way_before_.begin() + static_cast<std::ptrdiff_t>(past_);
    return longer_beside(first, under_way_before_.end(), clock, -slowed.rest,
                         [&](const Window& window) {
                           return times_longer(window.sums > 0 ? window.taken : slowed.share);
                         });
  }

  // By how much so much work takes longer, begun at that moment, which takes so many times as long
  // beside each of the stretches from `first` on, the earliest first.
  template <typename Place, typename Times>
  static Seconds longer_beside(Place first, Place last, Seconds clock, Seconds left,
                               const Times& times_beside) {
    Seconds longer = 0;
    for (; first != last; ++first) {
      if (first->end <= clock) continue;
      const Seconds free = std::max(0.0, first->begin - clock);
      if (left <= free) break;
      left -= free;
      clock += free;
      const double times = times_beside(*first);
      const Seconds beside = std::min(first->end - clock, left * times);
      left -= beside / times;
      longer += beside - beside / times;
      clock += beside;
    }
    return longer;
  }

  // Before the exchange, for a processor, which computes what is left behind its bucket: at full
  // speed, and no more is left than what earlier exchanges have not held up.
  Seconds waits(const plan::Slowed& slowed, Seconds begin) const {
    return std::clamp(left_at(begin, slowed.rest), 0.0, slowed.delay);
  }

  // Of the pass at that moment, where nothing runs beside it any longer.
  Seconds left_at(Seconds moment, Seconds rest) const {
    return free_[plan::kComputeStream] + rest - moment;
  }

  // The exchange, by the computation that is left behind its bucket.
  Seconds longer(const plan::Slowed& slowed, Window& window) const {
    const Seconds alone = window.end - window.begin;
    const Seconds slow = alone + slowed.share * window.flow + window.contended;
    double lost = slowed.lost;
    if (window.sums > 0) {
      const Seconds by_bytes = window.busy * (1 + slowed.share) * window.flow;
      lost = window.taken = (by_bytes + window.sums + window.decoding) / slow;
    }
    const Seconds left = left_at(window.begin, slowed.rest);
    const Seconds beside = std::max(0.0, left) * times_longer(lost);
    Seconds longer = slowed.share * std::min(beside, window.flow);
    if (window.contended > 0) longer += window.contended * std::min(1.0, beside / slow);
    window.end += longer;
    return longer;
  }

  // Before the exchange, for the next step's forward pass, which is like this one's and begins
  // where this step's computation ends.
  Seconds waits_for_next_step(const plan::Slowed& slowed, Seconds moment) const {
    constexpr Seconds kSame = 1e-12;  // one may begin what the other waited for
    const Seconds begin = moment - free_[plan::kComputeStream];
    const auto first = computing_at(begin);
    if (first == forward_.end() || first->begin > begin + kSame) return 0;
    return std::min(slowed.delay, first->end - begin);
  }

  // The exchange, by that pass.
  Seconds longer_by_next_step(const plan::Slowed& slowed, Window& window) const {
    const Seconds alone = window.end - window.begin;
    if (alone <= 0) return 0;
    const Seconds begin = window.begin - free_[plan::kComputeStream];
    const double times = 1 + (slowed.share * window.flow + window.contended) / alone;
    const Seconds longer = longer_beside(computing_at(begin), forward_.end(), begin, alone,
                                         [&](const Stretch&) { return times; });
    window.end += longer;
    return longer;
  }

  // The first stretch of the forward pass that is not over at that moment.
  std::vector<Stretch>::const_iterator computing_at(Seconds moment) const {
    return std::partition_point(forward_.begin(), forward_.end(),
                                [&](const Stretch& computed) { return computed.end <= moment; });
  }

  // That computation takes which loses so much of its time.
  static double times_longer(double share) { return 1 / (1 - std::min(share, kMostLost)); }

  static constexpr double kMostLost = 0.99;  // a doubt may have moved shares beyond all of it

  // Computation leaves half of a processor to whoever asks for all of it.
  static constexpr double kShared = 2;

  plan::Plan& plan_;
  collective::PriceBook& book_;
  std::vector<Seconds> ends_;
  std::vector<Seconds> ends_before_;  // of the period before, counted from this one's begin
  std::vector<Seconds> free_;         // by stream
  std::vector<Window> windows_;
  std::vector<Window> under_way_before_;  // of the period before, the first one first
  std::size_t past_ = 0;                  // those of them that are over
  // From when to when the forward pass computes, where it begins beside exchanges.
  std::vector<Stretch> forward_;
  bool repeated_ = false;  // in the first period the forward pass waits for nothing
  int under_way_ = -1;     // the bucket whose exchange is being listed
  Seconds flow_ = 0;       // what the bytes of its last collective take
};

bool begins_beside_exchanges(const plan::Plan& plan) {
  return std::any_of(plan.ops.begin(), plan.ops.end(), [](const plan::Op& op) {
    const auto* slowed = std::get_if<plan::Slowed>(&op.work);
    return slowed != nullptr && !slowed->bucket;
  });
}

}  // namespace

bool slows(const plan::Plan& plan) {
  return std::any_of(plan.ops.begin(), plan.ops.end(), [](const plan::Op& op) {
    return std::holds_alternative<plan::Slowed>(op.work) ||
           std::holds_alternative<plan::Sums>(op.work);
  });
}

plan::Plan with_slowed(plan::Plan plan, collective::PriceBook& book) {
  Pass pass(plan, book);
  pass.fill();
  // By the third period the forward pass waits for what the exchanges take that wait for it.
  for (int period = 1; period < 3 && begins_beside_exchanges(plan); ++period) {
    pass.turn_over();
    pass.fill();
  }
  return plan;
}

}  // namespace syncline::run
