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
    } else {
      slowed->seconds =
          slowed->rest == 0 ? delayed_by_next_step(*slowed, window) : delayed(*slowed, window);
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

  // By the computation, from this moment on or up to it.
  static Seconds lost(const plan::Slowed& slowed, const Window& window, Seconds now) {
    const double share = window.sums > 0 ? window.taken : slowed.share;
    const Seconds rest = slowed.rest * slower(slowed.share, share);
    const Seconds from = now + std::min(0.0, rest);
    const Seconds to = now + std::max(0.0, rest);
    const Seconds beside = std::min(window.end, to) - std::max(window.begin, from);
    return share * std::max(0.0, beside);
  }

  // By computation that took -rest up to this moment, had nothing run beside it.
  Seconds lost_to_step_before(const plan::Slowed& slowed, Seconds now) {
    const Seconds clock = now + slowed.rest;
    while (past_ < under_way_before_.size() && under_way_before_[past_].end <= clock) ++past_;
    const auto first = under_way_before_.begin() + static_cast<std::ptrdiff_t>(past_);
    return longer_beside(first, under_way_before_.end(), clock, -slowed.rest,
                         [&](const Window& window) {
                           const double share = window.sums > 0 ? window.taken : slowed.share;
                           return 1 / (1 - std::min(share, kMostLost));
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

  // The exchange, by the computation that is left behind its bucket. It does nothing while it waits
  // for a processor.
  Seconds delayed(const plan::Slowed& slowed, Window& window) const {
    const Seconds alone = window.end - window.begin;
    const Seconds slow = alone + slowed.share * window.flow + window.contended;
    Seconds rest = slowed.rest;
    if (window.sums > 0) {
      const Seconds by_bytes = window.busy * (1 + slowed.share) * window.flow;
      window.taken = (by_bytes + window.sums + window.decoding) / slow;
      rest *= slower(window.busy, window.taken);
    }
    const Seconds left = free_[plan::kComputeStream] + rest - window.begin;
    const Seconds waits = std::clamp(left, 0.0, slowed.delay);
    const Seconds beside = std::max(0.0, left - waits);
    Seconds longer = slowed.share * std::min(beside, window.flow);
    if (window.contended > 0) longer += window.contended * std::min(1.0, beside / slow);
    window.begin += waits;
    window.end += waits + longer;
    return waits + longer;
  }

  // The exchange, by the next step's forward pass, which is like this one's and begins where this
  // step's computation ends.
  Seconds delayed_by_next_step(const plan::Slowed& slowed, Window& window) const {
    constexpr Seconds kSame = 1e-12;  // one may begin what the other waited for
    const Seconds alone = window.end - window.begin;
    if (alone <= 0) return 0;
    const Seconds begin = window.begin - free_[plan::kComputeStream];
    const auto first =
        std::partition_point(forward_.begin(), forward_.end(),
                             [&](const Stretch& computed) { return computed.end <= begin; });
    Seconds waits = 0;
    if (first != forward_.end() && first->begin <= begin + kSame) {
      waits = std::min(slowed.delay, first->end - begin);
    }
    const double times = 1 + (slowed.share * window.flow + window.contended) / alone;
    const Seconds longer = longer_beside(first, forward_.end(), begin + waits, alone,
                                         [&](const Stretch&) { return times; });
    window.begin += waits;
    window.end += waits + longer;
    return waits + longer;
  }

  // How much longer computation takes that loses the share `is` of its time than one that loses
  // `was`.
  static double slower(double was, double is) {
    return (1 - std::min(was, kMostLost)) / (1 - std::min(is, kMostLost));
  }

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
