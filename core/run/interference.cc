#include "core/run/interference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "core/base/index.h"
#include "core/run/queues.h"

namespace syncline::run {
namespace {

using plan::Busy;
using plan::OpId;

// Returns the share of time that computation loses to a collective: its speed is 1/(1 + slowdown).
double lost_share(const Device& device) {
  return device.overlap.slowdown / (1 + device.overlap.slowdown);
}

// Sums in software: Gloo has no instructions for 16 bits. They occupy the processor that computes,
// and overlap with the flow of the bytes.
struct Sums {
  Seconds work = 0;     // of the processor
  double reducing = 1;  // share of the bytes' time in which sums are taken
  double exposed = 0;   // share of the shorter of both that the longer one does not hide
  double busy = 0;      // share of the processor that the bytes take
};

// Returns the share of a collective's time that ranks spend on sums; 0: they do not sum.
double reducing_share(collective::CollectiveKind kind) {
  using enum collective::CollectiveKind;
  if (kind == kAllReduce) return 0.5;  // each rank's part is summed first, then it goes round
  return kind == kReduceScatter || kind == kReduce ? 1 : 0;
}

// Returns one rank's sums; no work for collectives without sums, in wider formats, or at no cost.
Sums sums_of(const collective::Collective& collective, const Device& device) {
  constexpr Bytes kHalfBytes = 2;
  // Gloo sends a rank's part in segments and sums each while the next one flows: two of them, or
  // more if they would be larger than this.
  constexpr double kLargestSegment = 1024.0 * 1024.0;
  constexpr double kFewestSegments = 2;
  Sums sums;
  const double share = reducing_share(collective.kind);
  if (device.sums <= 0 || share <= 0 || collective.unit != kHalfBytes) return sums;
  // Each rank adds the other ranks' versions of its own part.
  const double others = collective.groups.size - 1;
  const double part = static_cast<double>(collective.bytes()) / collective.groups.size;
  if (others <= 0 || part <= 0) return sums;
  sums.work = others * part / device.sums;
  sums.reducing = share;
  sums.exposed = 1 / (others * std::max(kFewestSegments, std::ceil(part / kLargestSegment)));
  sums.busy = lost_share(device);
  return sums;
}

// Returns the sums' time in addition to that of the collective's bytes, which need the processor
// too. During computation, which leaves them half of the processor, sums take `times` as long.
Seconds beyond(const Sums& sums, Seconds wire, double times = 1) {
  const Seconds flow = sums.reducing * wire;
  return std::max(0.0, times * sums.work - (1 - sums.busy) * flow) +
         sums.exposed * std::min(flow, sums.work);
}

// Returns the compute stream of the same role.
plan::StreamId computing_beside(const plan::Plan& plan, plan::StreamId stream) {
  return stream - plan.own_stream(stream);
}

// The meaning of an inserted operation.
//
// Example: two gradients of 10 ms each and their all-reduces of 4 ms. overlap.slowdown and
// overlap.collective_slowdown are 0.25, overlap.delay is 3 ms; brackets mark inserted operations:
//
//   compute stream   backward 0..10  [kLostAhead 10..11]  backward 11..21                   (ms)
//   communication    [kDelay 10..13]  all-reduce 13..17  [kLonger 17..18]  all-reduce 21..25
//
// The first all-reduce begins during the backward pass, so it waits 3 ms and takes 25 % of 4 ms
// longer. For these 5 ms the pass runs at 1/1.25 of its speed and loses a fifth of them, 1 ms. The
// second all-reduce begins after the pass: nothing is inserted for it.
struct Effect {
  enum class Kind {
    kNone,             // the operation is the plan's own
    kSums,             // of the collective before it
    kDelay,            // an exchange waits for a processor
    kDelayNextStep,    // an exchange waits during the next step's forward pass
    kLonger,           // the exchange takes longer
    kLongerNextStep,   // the exchange takes longer, during the next step's forward pass
    kLostAhead,        // the computation is slowed by the exchange, from here on
    kLostBehind,       // the computation was slowed by the exchange, up to here
    kLostToStepBefore  // the computation is slowed by the previous step's exchanges
  };
  Kind kind = Kind::kNone;
  int exchange = -1;  // that it is part of, or that it interferes with; -1: none
  // Seconds of computation: still to come for kDelay, kLonger and kLostAhead; already over for
  // kLostBehind and kLostToStepBefore.
  Seconds computation = 0;
  Sums sums = {};
};

// A bucket's successive collectives on a communication stream, and operations after them.
struct BucketCollectives {
  OpId first = 0;
  OpId last = 0;
  int bucket = 0;
  bool gathers = false;
  Seconds pass = 0;        // computation of this step that may run during the exchange
  Seconds beyond = 0;      // of the next step, which begins before all parameters are in
  bool next_step = false;  // a gather that runs only during the next step's forward pass
};

// A plan with inserted operations of interference; their seconds are unknown at first.
class Inserted {
 public:
  Inserted(plan::Plan&& given, const Device& device)
      : device_(device), given_(std::move(given)), ends_(given_.ops.size(), 0) {
    if (given_.ranks > 1 && given_.streams > 1 && device.overlap.any()) find_exchanges();
    std::vector<plan::Op> ops = std::exchange(given_.ops, {});
    std::vector<plan::Bucket> buckets = std::exchange(given_.buckets, {});
    plan = given_;
    plan.buckets = std::move(buckets);
    given_.ops = std::move(ops);
    constexpr std::size_t kAround = 3;  // operations of interference around an exchange
    const std::size_t likely = given_.ops.size() + kAround * exchanges_.size();
    plan.ops.reserve(likely);
    effects.reserve(likely);
    insert();
  }

  std::size_t exchanges() const { return exchanges_.size(); }

  plan::Plan plan;
  std::vector<Effect> effects;  // by operation

 private:
  const plan::Op& given(OpId id) const { return given_.ops[index(id)]; }

  const plan::Compute* pass_at(OpId id) const {
    const auto* compute = std::get_if<plan::Compute>(&given(id).work);
    const bool passes = compute != nullptr && (compute->phase == plan::Phase::kForward ||
                                               compute->phase == plan::Phase::kBackward);
    return passes ? compute : nullptr;
  }

  // Finds the exchanges, one per series of collectives of a bucket on its stream. Operations after
  // them there belong to it too, except waits for a tick. Then finds the computation during each.
  void find_exchanges() {
    for (OpId id = 0; id < static_cast<OpId>(given_.ops.size()); ++id) {
      const plan::Op& op = given(id);
      if (given_.computes(op.stream)) continue;
      const bool follows = !exchanges_.empty() && exchanges_.back().last == id - 1 &&
                           given(id - 1).stream == op.stream;
      if (const auto* collective = std::get_if<collective::Collective>(&op.work)) {
        if (collective->bucket < 0) continue;  // a small one between pipeline stages
        const bool same = follows && exchanges_.back().bucket == collective->bucket &&
                          exchanges_.back().gathers == op.gathers;
        if (!same) exchanges_.push_back({id, id, collective->bucket, op.gathers});
        exchanges_.back().last = id;
      } else if (follows && plan::reason_of(op.work) != Busy::Reason::kTick) {
        exchanges_.back().last = id;
      }
    }
    find_computation();
  }

  // Finds the computation during each exchange, from the last operation back.
  void find_computation() {
    find_next_step();
    struct Ahead {
      Seconds pass = 0;       // of the backward pass, still to come
      Seconds preparing = 0;  // of its buckets
      OpId next_pass = -1;    // next pass of the model, or -1
    };
    std::vector<Ahead> roles(index(given_.roles));
    auto exchange = exchanges_.rbegin();
    for (auto id = static_cast<OpId>(given_.ops.size()) - 1; id >= 0; --id) {
      const plan::Op& op = given(id);
      auto& [pass, preparing, next_pass] = roles[index(given_.role_of(op.stream))];
      if (exchange != exchanges_.rend() && exchange->first == id) {
        settle(*exchange, pass + preparing, next_pass);
        ++exchange;
      }
      if (!given_.computes(op.stream)) continue;
      if (const auto* compute = std::get_if<plan::Compute>(&op.work)) {
        const bool backward = compute->phase == plan::Phase::kBackward;
        pass = backward ? pass + compute->seconds : 0;
        preparing = backward ? preparing : 0;
        if (pass_at(id) != nullptr) next_pass = id;
      }
      const auto reason = plan::reason_of(op.work);
      if (reason == Busy::Reason::kEncode || reason == Busy::Reason::kCopyIn) {
        preparing += plan::seconds_of(op.work);
      }
    }
  }

  // Finds the buckets that the next step awaits, layer by layer, and the time of its forward pass.
  void find_next_step() {
    awaited_.assign(given_.ops.size(), 0);
    if (given_.roles > 1) return;                        // a pipeline drains between two steps
    std::vector<char> copied(given_.buckets.size(), 0);  // copied out, awaited by the next step
    bool by_layers = false;
    for (const plan::Op& op : given_.ops) {
      const auto* compute = std::get_if<plan::Compute>(&op.work);
      if (compute == nullptr) continue;
      if (compute->phase == plan::Phase::kBackward) break;
      if (compute->phase != plan::Phase::kForward) continue;
      forward_ += compute->seconds;
      by_layers |= compute->last >= 0;
    }
    for (const plan::Op& op : given_.ops) {
      for (const OpId id : op.after_previous) {
        if (by_layers) awaited_[index(id)] = 1;
      }
    }
    for (std::size_t id = 0; id < awaited_.size(); ++id) {
      const auto* busy = std::get_if<Busy>(&given_.ops[id].work);
      if (busy != nullptr && busy->reason == Busy::Reason::kCopyOut && awaited_[id] != 0) {
        copied[index(busy->bucket)] = 1;
      }
    }
    for (const BucketCollectives& exchange : exchanges_) {
      if (copied[index(exchange.bucket)] != 0) awaited_[index(exchange.last)] = 1;
    }
  }

  // Sets the computation during an exchange. `rest`: the backward pass still to come, with its
  // preparation of buckets; `next_pass`: the next pass of the model, -1: none.
  void settle(BucketCollectives& exchange, Seconds rest, OpId next_pass) {
    const bool awaited = awaited_[index(exchange.last)] != 0;
    if (!exchange.gathers) {
      exchange.pass = rest;
      exchange.beyond = awaited ? forward_ : 0;
      begins_early_ |= awaited;
      return;
    }
    if (next_pass < 0) {
      exchange.next_step = awaited && forward_ > 0;
      begins_early_ |= exchange.next_step;
      return;
    }
    const auto& after = given(next_pass).after;
    const bool waits = std::ranges::find(after, exchange.last) != after.end();
    if (!waits) exchange.pass = plan::seconds_of(given(next_pass).work);
  }

  OpId add(plan::Op&& op, const Effect& effect = {}) {
    plan.ops.push_back(std::move(op));
    effects.push_back(effect);
    return static_cast<OpId>(plan.ops.size()) - 1;
  }

  OpId add(Effect::Kind kind, plan::StreamId stream, const BucketCollectives* exchange, int step,
           Seconds computation) {
    const int bucket = exchange == nullptr ? -1 : exchange->bucket;
    const int number = exchange == nullptr ? -1 : static_cast<int>(exchange - exchanges_.data());
    return add({stream, {}, Busy{Busy::Reason::kInterference, 0, bucket}, step},
               {kind, number, computation});
  }

  // Moves the given operations into `plan`, with the operations of interference among them.
  void insert() {
    std::size_t number = 0;
    std::vector<std::vector<const BucketCollectives*>> gathers(
        index(given_.roles));  // during the next pass
    bool first_forward = true;
    for (OpId id = 0; id < static_cast<OpId>(given_.ops.size()); ++id) {
      plan::Op& op = given_.ops[index(id)];
      for (OpId& before : op.after) before = ends_[index(before)];
      const BucketCollectives* exchange =
          number < exchanges_.size() ? &exchanges_[number] : nullptr;
      if (exchange != nullptr && exchange->first > id) exchange = nullptr;
      if (exchange != nullptr && exchange->first == id) delay(*exchange, op);
      const int part_of = exchange == nullptr ? -1 : static_cast<int>(number);
      ends_[index(id)] = add(std::move(op), {Effect::Kind::kNone, part_of});
      // All but its lists of predecessors is still there.
      static_assert(std::is_trivially_copyable_v<plan::Work>);
      const plan::Op& moved = given(id);
      if (const auto* collective = std::get_if<collective::Collective>(&moved.work)) {
        sum(*collective, moved, id, part_of);
      }
      auto& gathered = gathers[index(given_.role_of(moved.stream))];
      if (exchange != nullptr && exchange->last == id) {
        lengthen(*exchange, moved);
        if (exchange->gathers && exchange->pass > 0) gathered.push_back(exchange);
        ++number;
      }
      const auto* pass = pass_at(id);
      if (pass == nullptr) continue;
      for (const BucketCollectives* gather : std::exchange(gathered, {})) {
        ends_[index(id)] =
            add(Effect::Kind::kLostBehind, moved.stream, gather, moved.step, pass->seconds);
      }
      first_forward &= pass->phase == plan::Phase::kForward;
      if (first_forward && begins_early_ && pass->seconds > 0) {
        add(Effect::Kind::kLostToStepBefore, plan::kComputeStream, nullptr, moved.step,
            pass->seconds);
      }
    }
    for (plan::Op& op : plan.ops) {
      for (OpId& before : op.after_previous) before = ends_[index(before)];
    }
  }

  // Adds the wait for a processor before an exchange that begins during computation.
  void delay(const BucketCollectives& exchange, plan::Op& first) {
    const Seconds during = exchange.pass + exchange.beyond;
    if (device_.overlap.delay <= 0 || (during <= 0 && !exchange.next_step)) return;
    std::erase_if(first.after, [&](OpId id) { return plan.ops[index(id)].stream == first.stream; });
    const OpId waits = add(exchange.next_step ? Effect::Kind::kDelayNextStep : Effect::Kind::kDelay,
                           first.stream, &exchange, first.step, during);
    plan.ops[index(waits)].after = std::exchange(first.after, {});
    plan.ops[index(waits)].after_previous = std::exchange(first.after_previous, {});
  }

  void sum(const collective::Collective& collective, const plan::Op& op, OpId id, int part_of) {
    const Sums sums = sums_of(collective, device_);
    if (sums.work <= 0) return;
    ends_[index(id)] =
        add({op.stream, {}, Busy{Busy::Reason::kSums, 0, collective.bucket}, op.step},
            {Effect::Kind::kSums, part_of, 0, sums});
  }

  void lengthen(const BucketCollectives& exchange, const plan::Op& last) {
    const Seconds during = exchange.pass + exchange.beyond;
    if (during <= 0 && !exchange.next_step) return;
    ends_[index(exchange.last)] =
        add(exchange.next_step ? Effect::Kind::kLongerNextStep : Effect::Kind::kLonger, last.stream,
            &exchange, last.step, during);
    if (exchange.gathers || exchange.pass <= 0) return;
    add(Effect::Kind::kLostAhead, computing_beside(given_, last.stream), &exchange, last.step,
        exchange.pass);
  }

  const Device& device_;
  plan::Plan given_;
  std::vector<BucketCollectives> exchanges_;
  std::vector<OpId> ends_;     // by operation of the given plan: the last one that replaces it
  std::vector<char> awaited_;  // by operation: the next step's forward pass waits for it
  Seconds forward_ = 0;        // pass, of one micro-batch
  bool begins_early_ = false;  // the next step's forward pass begins before all exchanges are over
};

// The time of an exchange and, with sums in software, its load on the processor that computes.
struct Window {
  Seconds begin = std::numeric_limits<double>::infinity();
  Seconds end = 0;
  Seconds flow = 0;       // of the bytes
  double busy = 0;        // share of the processor that the bytes take
  Seconds sums = 0;       // work of the processor
  Seconds decoding = 0;   // work of the processor for decoding
  Seconds contended = 0;  // extra time of both during computation
  double taken = 0;       // share of the processor during computation
};

struct Stretch {
  Seconds begin = 0;
  Seconds end = 0;
};

// One pass over a period: each operation begins when its stream and its dependencies are done.
class Pass {
 public:
  Pass(Inserted& inserted, const Device& device, collective::CostCache& cache)
      : plan_(inserted.plan),
        effects_(inserted.effects),
        overlap_(device.overlap),
        lost_share_(lost_share(device)),
        cache_(cache),
        queues_(plan_),
        windows_(inserted.exchanges()) {}

  void fill() {
    queues_.pass(plan_, [this](std::size_t i, Seconds begin) {
      return duration(plan_.ops[i], effects_[i], begin);
    });
  }

  // Keeps exchanges that are under way when the next period may begin; restarts the clock there.
  void turn_over() {
    const Seconds period = queues_.free(plan::kComputeStream);
    queues_.start_at(period);
    under_way_before_.clear();
    for (const Window& window : windows_) {
      if (window.end <= period) continue;
      under_way_before_.push_back(window);
      under_way_before_.back().begin -= period;
      under_way_before_.back().end -= period;
    }
    std::ranges::sort(under_way_before_, {}, &Window::begin);
    windows_.assign(windows_.size(), {});
    past_ = 0;
    forward_.clear();
    repeated_ = true;
  }

 private:
  using Kind = Effect::Kind;

  // Returns the duration of an operation that begins at `begin`; sets it if the operation was
  // inserted.
  Seconds duration(plan::Op& op, const Effect& effect, Seconds begin) {
    computing_ = computing_beside(plan_, op.stream);
    Window* window = effect.exchange < 0 ? nullptr : &windows_[index(effect.exchange)];
    if (const auto* collective = std::get_if<collective::Collective>(&op.work)) {
      return exchange(*collective, window, begin);
    }
    auto* busy = std::get_if<Busy>(&op.work);
    if (effect.kind == Kind::kSums) return busy->seconds = summed(effect.sums, window);
    if (effect.kind != Kind::kNone) return busy->seconds = taken_by(effect, window, begin);
    if (busy != nullptr && busy->reason == Busy::Reason::kDecode) decoded(*busy, window);
    return plan::seconds_of(op.work);
  }

  // Returns the duration of an inserted operation that begins at `begin`.
  Seconds taken_by(const Effect& effect, Window* window, Seconds begin) {
    switch (effect.kind) {
      case Kind::kDelay:
        return std::clamp(left_at(begin, effect.computation), 0.0, overlap_.delay);
      case Kind::kDelayNextStep:
        return waits_for_next_step(begin);
      case Kind::kLonger:
        return longer(effect.computation, *window);
      case Kind::kLongerNextStep:
        return longer_by_next_step(*window);
      case Kind::kLostAhead:
        return lost_ahead(effect.computation, *window, begin);
      case Kind::kLostBehind:
        return lost_behind(effect.computation, *window, begin);
      case Kind::kLostToStepBefore:
        return lost_to_step_before(effect.computation, begin);
      case Kind::kNone:
      case Kind::kSums:
        break;
    }
    return 0;
  }

  Seconds exchange(const collective::Collective& collective, Window* window, Seconds begin) {
    flow_ = cache_.time(collective);
    if (window == nullptr) return flow_;
    window->begin = std::min(window->begin, begin);
    window->end = begin + flow_;
    window->flow += flow_;
    return flow_;
  }

  // Returns the duration of sums after their collective.
  Seconds summed(const Sums& sums, Window* window) const {
    const Seconds seconds = beyond(sums, flow_);
    if (window == nullptr) return seconds;
    window->sums += sums.work;
    window->busy = sums.busy;
    window->contended += beyond(sums, flow_, kShared) - seconds;
    window->end += seconds;
    return seconds;
  }

  // Counts decoding with the sums, as work of the same processor.
  static void decoded(const Busy& decode, Window* window) {
    if (window == nullptr || window->sums <= 0) return;
    window->decoding += decode.seconds;
    window->contended += (kShared - 1) * decode.seconds;
    window->end += decode.seconds;
  }

  // Returns the share of its time that computation loses while that exchange runs.
  double share_lost(const Window& window) const {
    return window.sums > 0 ? window.taken : lost_share_;
  }

  // Returns the computation's loss from this moment on; before the exchange begins it has none.
  Seconds lost_ahead(Seconds computation, const Window& window, Seconds now) const {
    const double share = share_lost(window);
    const Seconds begin = std::max(window.begin, now);
    const Seconds left = (now + computation - begin) * times_longer(share);
    return share * std::max(0.0, std::min(window.end - begin, left));
  }

  // Returns the computation's loss up to this moment.
  Seconds lost_behind(Seconds computed, const Window& window, Seconds now) const {
    const double share = share_lost(window);
    const Seconds from = now - computed * times_longer(share);
    const Seconds both = std::min(window.end, now) - std::max(window.begin, from);
    return share * std::max(0.0, both);
  }

  // Returns the loss of computation that would have taken `computed` seconds without exchanges.
  Seconds lost_to_step_before(Seconds computed, Seconds now) {
    const Seconds clock = now - computed;
    while (past_ < under_way_before_.size() && under_way_before_[past_].end <= clock) ++past_;
    const auto first = under_way_before_.begin() + static_cast<std::ptrdiff_t>(past_);
    const Seconds lost =
        longer_during(first, under_way_before_.end(), clock, computed,
                      [&](const Window& window) { return times_longer(share_lost(window)); });
    if (repeated_) forward_.push_back({now - computed, now + lost});
    return lost;
  }

  // Returns the increase of `left` seconds of work, begun at `clock`, that takes
  // times_during(stretch) as long during each stretch from `first` on, the earliest first.
  template <typename Place, typename Times>
  static Seconds longer_during(Place first, Place last, Seconds clock, Seconds left,
                               const Times& times_during) {
    Seconds longer = 0;
    for (; first != last; ++first) {
      if (first->end <= clock) continue;
      const Seconds free = std::max(0.0, first->begin - clock);
      if (left <= free) break;
      left -= free;
      clock += free;
      const double times = times_during(*first);
      const Seconds both = std::min(first->end - clock, left * times);
      left -= both / times;
      longer += both - both / times;
      clock += both;
    }
    return longer;
  }

  // Returns the rest of the pass at that moment, negative once it is over. Losses to earlier
  // exchanges are contained in the stream's free time.
  Seconds left_at(Seconds moment, Seconds computation) const {
    return queues_.free(computing_) + computation - moment;
  }

  // Returns the exchange's extra time due to the computation that remains after its bucket.
  Seconds longer(Seconds computation, Window& window) const {
    const double slowdown = overlap_.collective_slowdown;
    const Seconds alone = window.end - window.begin;
    const Seconds slow = alone + slowdown * window.flow + window.contended;
    double lost = lost_share_;
    if (window.sums > 0) {
      const Seconds by_bytes = window.busy * (1 + slowdown) * window.flow;
      lost = window.taken = (by_bytes + window.sums + window.decoding) / slow;
    }
    const Seconds left = left_at(window.begin, computation);
    const Seconds both = std::max(0.0, left) * times_longer(lost);
    Seconds longer = slowdown * std::min(both, window.flow);
    if (window.contended > 0) longer += window.contended * std::min(1.0, both / slow);
    window.end += longer;
    return longer;
  }

  // Returns the wait before an exchange during the next step's forward pass. That pass is like this
  // one's and begins at the end of this step's computation.
  Seconds waits_for_next_step(Seconds moment) const {
    constexpr Seconds kSame = 1e-12;  // tolerance: one may begin at the end of the other
    const Seconds begin = moment - queues_.free(plan::kComputeStream);
    const auto first = computing_at(begin);
    if (first == forward_.end() || first->begin > begin + kSame) return 0;
    return std::min(overlap_.delay, first->end - begin);
  }

  // Returns the exchange's extra time due to that pass.
  Seconds longer_by_next_step(Window& window) const {
    const Seconds alone = window.end - window.begin;
    if (alone <= 0) return 0;
    const Seconds begin = window.begin - queues_.free(plan::kComputeStream);
    const double times =
        1 + (overlap_.collective_slowdown * window.flow + window.contended) / alone;
    const Seconds longer = longer_during(computing_at(begin), forward_.end(), begin, alone,
                                         [&](const Stretch&) { return times; });
    window.end += longer;
    return longer;
  }

  // Returns the first stretch of the forward pass that is not over at that moment.
  std::vector<Stretch>::const_iterator computing_at(Seconds moment) const {
    return std::ranges::upper_bound(forward_, moment, {}, &Stretch::end);
  }

  // Returns the time factor of computation that loses `share` of its time.
  static double times_longer(double share) { return 1 / (1 - std::min(share, kMaxLoss)); }

  static constexpr double kMaxLoss = 0.99;  // sums may need more than the whole processor

  // Time factor of other work during computation, which leaves it half of a processor.
  static constexpr double kShared = 2;

  plan::Plan& plan_;
  const std::vector<Effect>& effects_;
  const Overlap& overlap_;
  double lost_share_;
  collective::CostCache& cache_;
  Queues queues_;
  std::vector<Window> windows_;
  std::vector<Window> under_way_before_;  // of the previous period, the first one first
  std::size_t past_ = 0;                  // number of those that are over
  // Spans of the forward pass's computation, if it begins before all parameters are in.
  std::vector<Stretch> forward_;
  bool repeated_ = false;  // in the first period the forward pass does not wait
  plan::StreamId computing_ = plan::kComputeStream;  // of the role of the current operation
  Seconds flow_ = 0;                                 // time of the bytes of its last collective
};

}  // namespace

plan::Plan with_interference(plan::Plan plan, const Device& device, collective::CostCache& cache) {
  if (plan.ranks == 1 || (device.sums <= 0 && !device.overlap.any())) return plan;
  Inserted inserted(std::move(plan), device);
  Pass pass(inserted, device, cache);
  pass.fill();
  // The forward pass of the third period waits for the lengthened exchanges.
  const bool repeats = std::ranges::any_of(inserted.effects, [](const Effect& effect) {
    return effect.kind == Effect::Kind::kLostToStepBefore;
  });
  for (int period = 1; repeats && period < 3; ++period) {
    pass.turn_over();
    pass.fill();
  }
  return std::move(inserted.plan);
}

Seconds sums_beyond(const collective::Collective& collective, const Device& device, Seconds wire) {
  return beyond(sums_of(collective, device), wire);
}

}  // namespace syncline::run
