#include "core/plan/step_plan.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "core/base/index.h"
#include "core/plan/builder.h"
#include "core/plan/fusion.h"

namespace syncline::plan {
namespace {

template <typename Item>
void keep_each_once(std::vector<Item>& items) {
  std::sort(items.begin(), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
}

// The backward pass, each bucket's exchange (or the first half of a split one) as soon as its last
// gradient is there, or its tick has come, or it is the most urgent; the pass up to a bucket stands
// ahead of its exchange.
class Backward {
 public:
  // The gradients' buckets are those of the plan from `begin` on.
  Backward(Builder& build, const Workload& workload, const Communication& communication,
           std::size_t begin)
      : build_(build), workload_(workload), communication_(communication), begin_(begin) {
    for (std::size_t turn = 0; turn < communication.gradients.size(); ++turn) {
      const bool goes_on = bucket(begin + in_turn(turn)).first > 0 && !counted_.empty();
      counted_.push_back(counted_.empty() ? 0 : counted_.back() + (goes_on ? 0 : 1));
    }
    find_parameters_again();
    find_kept_elements();
    segment_ = static_cast<OpId>(build.plan.ops.size()) - 1;  // the forward pass
  }

  // Returns the last operation of each.
  std::vector<OpId> run() {
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

  // The first wait for a tick, or -1: it begins with the step.
  OpId first_tick() const { return first_tick_; }

 private:
  // Parameters that the backward pass gathers again: a bucket of the plan, and the first tensor
  // that needs them.
  struct Again {
    std::size_t bucket = 0;
    const Exchange* exchange = nullptr;
    int needed = 0;
  };

  const Bucket& bucket(std::size_t number) const { return build_.plan.buckets[number]; }

  std::size_t in_turn(std::size_t turn) const {
    return communication_.order.empty() ? turn : index(communication_.order[turn]);
  }

  void find_parameters_again() {
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

  void find_kept_elements() {
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

  // Whether parameters may be gathered beside those that the pass holds, the first `needed` of
  // again_ among them.
  bool room_ahead(std::size_t needed) const {
    if (communication_.live_elements == 0) return true;
    std::int64_t live = kept_[index(next_)];
    for (std::size_t g = 0; g < needed; ++g) {
      const Bucket& gathered = bucket(again_[g].bucket);
      if (std::ranges::max(gathered.tensors) >= next_) live += gathered.elements;
    }
    return live < communication_.live_elements;
  }

  // Exchanges of the turns before that must not be under way any more when the backward pass goes
  // on in a turn.
  std::vector<OpId> awaited(std::size_t turn, const std::vector<OpId>& done) {
    std::vector<OpId> after;
    if (build_.plan.ranks == 1) return after;
    const auto in_flight = index(communication_.in_flight);
    const auto over = [&](std::size_t t) { return counted_[t] + in_flight < counted_[turn]; };
    for (; in_flight > 0 && over(awaited_); ++awaited_) after.push_back(done[awaited_]);
    return after;
  }

  // The pass up to a tensor, in pieces where parameters come in on the way; the first waits for
  // `after` too.
  void pass_to(int ready, std::vector<OpId> after) {
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

  // Asks, behind the pass so far, for the first `needed` of again_ and for the next one behind
  // them, if there is room. Adds what brings in the former to `after`.
  void fetch(std::size_t needed, std::vector<OpId>& after) {
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

  OpId reduce(std::size_t number, const Exchange& exchange, std::size_t place,
              std::vector<OpId> after, bool prepare) {
    if (build_.plan.ranks == 1) return after.front();
    if (prepare) after.front() = build_.prepare(number, exchange, after.front());
    const OpId sent =
        build_.send(number, exchange.reduce, build_.stream_of(place), std::move(after));
    return exchange.scattered ? sent : build_.receive(number, exchange, sent);
  }

  // The tick that releases an exchange: by the clock, or what is left of the cycle once it is
  // ready.
  OpId tick(const Exchange& exchange, OpId ready) {
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

  Builder& build_;
  const Workload& workload_;
  const Communication& communication_;
  std::size_t begin_;
  OpId segment_ = 0;                  // the pass, or what stands ahead of it, as far as it got
  int next_ = 0;                      // the first tensor behind that
  std::size_t awaited_ = 0;           // exchanges, from the first on
  std::vector<std::size_t> counted_;  // by turn: those ahead of it, a gradient's parts as one
  std::vector<Again> again_;          // in the order in which they are needed
  std::vector<std::int64_t> kept_;  // by tensor: elements from there on that are not gathered again
  std::vector<OpId> gathers_;       // of again_, those that were asked for
  std::size_t gathers_awaited_ = 0;
  OpId first_tick_ = -1;
  OpId tick_ = -1;
  Seconds tick_time_ = 0;
};

class StepPlan {
 public:
  StepPlan(const Workload& workload, Communication&& communication)
      : workload_(workload),
        communication_(std::move(communication)),
        build_(workload, communication_),
        gradients_(communication_.gradients.size()),
        sharded_(communication_.shards > 1),
        last_(static_cast<int>(workload.tensors.size()) - 1),
        all_bytes_(static_cast<double>(gradient_bytes(workload))) {
    // Each micro-batch that exchanges has buckets of its own; those of the last one come last.
    auto& buckets = build_.plan.buckets;
    const auto copies = communication_.each_micro_batch ? workload.micro_batches : 1;
    buckets.reserve(index(copies) * gradients_ + communication_.parameters.size());
    for (std::int64_t m = 1; m < copies; ++m) {
      for (const Exchange& one : communication_.gradients) buckets.push_back(one.bucket);
    }
    base_ = buckets.size();
    for (Exchange& one : communication_.gradients) buckets.push_back(std::move(one.bucket));
    for (Exchange& one : communication_.parameters) buckets.push_back(std::move(one.bucket));
    find_buckets_of_tensors();
  }

  Plan make(StepCut* cut) {
    build_.plan.ops.reserve(3 * build_.plan.buckets.size() + 2);
    forward();
    earlier_micro_batches();
    if (cut != nullptr) cut->backward = next_op();
    Backward backward(build_, workload_, communication_, base_);
    const auto sent = backward.run();
    if (cut != nullptr) cut->rest = next_op();
    arrived_.assign(count(), -1);
    std::copy(sent.begin(), sent.end(), arrived_.begin());
    if (sharded_) {
      build_.host_gap(sent);
      update_shards(sent);
      if (!gathers_in_forward()) gather();
    } else {
      gather();
      for (std::size_t b = 0; b < gradients_; ++b)
        if (!communication_.cross_step)
          arrived_[b] = build_.copy_out(base_ + b, exchange(b), arrived_[b]);
      build_.host_gap(arrived_);
      if (!communication_.cross_step) update();
    }
    // Only now is it known which operation brings in each bucket of the step before.
    for (const auto& [op, buckets_of_tensor] : next_step_waits_) {
      auto& after = build_.plan.ops[index(op)].after_previous;
      for (const auto b : buckets_of_tensor) after.push_back(arrived_[b]);
      keep_each_once(after);
    }
    begin_ticks_with_the_step(backward.first_tick());
    return std::move(build_.plan);
  }

 private:
  OpId next_op() const { return static_cast<OpId>(build_.plan.ops.size()); }

  // Exchanges of the last micro-batch and of parameters apart, counted from the former's first.
  std::size_t count() const { return gradients_ + communication_.parameters.size(); }
  const Exchange& exchange(std::size_t b) const {
    return b < gradients_ ? communication_.gradients[b] : communication_.parameters[b - gradients_];
  }
  const Bucket& bucket(std::size_t b) const { return build_.plan.buckets[base_ + b]; }

  // By which buckets each tensor's parameters come in.
  void find_buckets_of_tensors() {
    if (!sharded_ && !communication_.cross_step) return;  // nobody will ask
    buckets_of_tensor_.resize(workload_.tensors.size());
    for (std::size_t b = gradients_; b < count(); ++b) {
      for (const int tensor : bucket(b).tensors) {
        buckets_of_tensor_[index(tensor)].push_back(b);
      }
      if (std::ranges::max(bucket(b).tensors) < bucket(b).ready) ahead_.push_back(b);
    }
    std::ranges::stable_sort(ahead_, {}, [&](std::size_t b) {
      return std::pair(-bucket(b).ready, std::ranges::max(bucket(b).tensors));
    });
    // A gradient's bucket brings its own parameters, unless a gather bucket does that.
    for (std::size_t b = 0; b < gradients_; ++b) {
      const auto& first = buckets_of_tensor_[index(bucket(b).tensors.front())];
      if (!first.empty() && first.front() >= gradients_) continue;
      for (const int tensor : bucket(b).tensors) {
        buckets_of_tensor_[index(tensor)].push_back(b);
      }
    }
  }

  // The share of the update that a bucket's parameters take on one rank.
  double share_of(std::size_t b) const {
    double bytes = 0;
    for (const int t : bucket(b).tensors) {
      const Tensor& tensor = workload_.tensors[index(t)];
      const bool part = bucket(b).tensors.size() == 1;
      bytes += static_cast<double>(size_of(tensor.dtype)) *
               static_cast<double>(part ? bucket(b).elements : tensor.elements);
    }
    return bytes / all_bytes_ / exchange(b).shards;
  }

  // Within a step the forward pass is one piece. Across steps it is cut where a layer needs buckets
  // that no layer before it has waited for: layers between two cuts are one segment, and the update
  // of what the segment waited for goes ahead of it.
  void forward() {
    build_.begin_step();
    if (gathers_in_forward()) return gathered_forward({});
    if (!communication_.cross_step) {
      const OpId whole = build_.compute(Phase::kForward, workload_.forward);
      if (!sharded_) return;
      auto& awaited = next_step_waits_.emplace_back(whole, std::vector<std::size_t>{}).second;
      for (const auto& own : buckets_of_tensor_) {
        awaited.insert(awaited.end(), own.begin(), own.end());
      }
      return;
    }
    for (const auto& segment : segments()) {
      OpId lead = -1;
      double share = 0;
      for (const auto b : segment.awaited) share += b < gradients_ ? share_of(b) : 0;
      const ForwardLayer& layers = segment.layers;
      copy_out_of_last_step(segment.awaited);
      if (!sharded_ && workload_.update > 0 && share > 0) {
        lead = build_.compute(Phase::kUpdate, workload_.update * share, layers.first, layers.last);
      }
      const OpId op = build_.compute(Phase::kForward, layers.seconds, layers.first, layers.last);
      if (!segment.awaited.empty())
        next_step_waits_.push_back({lead < 0 ? op : lead, segment.awaited});
    }
  }

  // Each once it has arrived, ahead of the layers that need it.
  void copy_out_of_last_step(const std::vector<std::size_t>& awaited) {
    for (const auto b : awaited) {
      if (sharded_ || exchange(b).copy_out <= 0) continue;
      const Busy copy{Busy::Reason::kCopyOut, exchange(b).copy_out, static_cast<int>(base_ + b)};
      next_step_waits_.push_back({build_.add(kComputeStream, copy), {b}});
    }
  }

  // Layers of the forward pass that begin together, and the buckets that the first of them needs
  // and none before it did.
  struct Segment {
    ForwardLayer layers;
    std::vector<std::size_t> awaited;
  };
  std::vector<Segment> segments() const {
    std::vector<Segment> list;
    std::vector<char> seen(count(), 0);
    for (const auto& layer : forward_layers(workload_)) {
      std::vector<std::size_t> fresh;
      const auto awaits = [&](std::size_t b) {
        if (std::exchange(seen[b], 1) == 0) fresh.push_back(b);
      };
      for (const auto b : ahead_) {
        if (bucket(b).ready >= layer.first) awaits(b);
      }
      for (int t = layer.first; t <= layer.last; ++t) {
        std::ranges::for_each(buckets_of_tensor_[index(t)], awaits);
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

  // The forward pass of a later micro-batch of one step, behind `done`. Where parameters are given
  // up after each backward pass they are gathered for it again, one segment's after the other's.
  void forward_again(const std::vector<OpId>& done) {
    if (sharded_ && communication_.cross_step) return gathered_forward(done);
    build_.compute(Phase::kForward, workload_.forward, 0, -1, done);
  }

  // Whether a step gathers its parameters itself, as there is room for them, instead of the step
  // before it once they are updated.
  bool gathers_in_forward() const {
    return sharded_ && communication_.cross_step && communication_.live_elements > 0;
  }

  // The forward pass with what it gathers, behind `begun`, or behind the step before where that is
  // empty. A bucket is asked for where there is room for it, at the latest when the segment ahead
  // of its own is done.
  void gathered_forward(const std::vector<OpId>& begun) {
    const auto list = segments();
    const auto given_up = given_up_behind(list);
    const std::int64_t room = communication_.live_elements > 0
                                  ? communication_.live_elements
                                  : std::numeric_limits<std::int64_t>::max();
    const auto is_gathered = [&](std::size_t b) { return !exchange(b).gather.empty(); };
    std::vector<std::pair<std::size_t, std::size_t>> queue;  // of segments and their buckets
    for (std::size_t s = 0; s < list.size(); ++s) {
      for (const auto b : list[s].awaited) {
        if (is_gathered(b)) queue.emplace_back(s, b);
      }
    }
    std::vector<std::vector<OpId>> brought(list.size());
    brought.front() = begun;
    std::vector<OpId> ahead = begun;
    std::int64_t live = 0;
    std::size_t asked = 0;
    for (std::size_t s = 0; s < list.size(); ++s) {
      const ForwardLayer& layers = list[s].layers;
      for (; asked < queue.size() && (queue[asked].first <= s || live < room); ++asked) {
        const auto [segment, b] = queue[asked];
        brought[segment].push_back(gather_now(b, asked, ahead, begun.empty()));
        live += bucket(b).elements;
      }
      const OpId op = build_.compute(Phase::kForward, layers.seconds, layers.first, layers.last,
                                     std::move(brought[s]));
      for (const auto b : list[s].awaited) {
        if (begun.empty() && !is_gathered(b)) next_step_waits_.push_back({op, {b}});
      }
      ahead = {op};
      live -= given_up[s];
    }
  }

  // One bucket's parameters, behind `ahead`, and behind their update where that is the step's
  // before. Returns what brings them in.
  OpId gather_now(std::size_t b, std::size_t place, const std::vector<OpId>& ahead,
                  bool updated_before) {
    const StreamId stream = build_.stream_of(place);
    const OpId sent = build_.gather(base_ + b, exchange(b).gather, stream, ahead);
    if (updated_before) next_step_waits_.push_back({sent, gradient_buckets_of(b)});
    return build_.receive(base_ + b, exchange(b), sent);
  }

  // Elements that are given up behind each segment: of buckets that no later one needs and that are
  // gathered again for the backward pass.
  std::vector<std::int64_t> given_up_behind(const std::vector<Segment>& list) const {
    std::vector<std::int64_t> elements(list.size(), 0);
    for (std::size_t b = 0; b < count(); ++b) {
      if (exchange(b).again.empty()) continue;
      const int lowest = std::ranges::min(bucket(b).tensors);
      // Segments walk the tensors from the last to the first.
      const auto own = std::ranges::find_if(
          list, [&](const Segment& segment) { return segment.layers.first <= lowest; });
      if (own != list.end()) elements[index(own - list.begin())] += bucket(b).elements;
    }
    return elements;
  }

  // The micro-batches ahead of the last one. Where they exchange too, the next forward pass begins
  // once that is over.
  void earlier_micro_batches() {
    if (base_ == 0) {
      build_.earlier_micro_batches();
      return;
    }
    build_.last_micro_batch = false;
    for (std::size_t begin = 0; begin < base_; begin += gradients_) {
      auto done = Backward(build_, workload_, communication_, begin).run();
      for (std::size_t b = 0; b < gradients_; ++b) {
        if (!exchange(b).scattered) done[b] = build_.copy_out(begin + b, exchange(b), done[b]);
      }
      forward_again(done);
    }
    build_.last_micro_batch = true;
  }

  // Each rank updates its shards, once `sent` is done.
  void update_shards(const std::vector<OpId>& sent) {
    if (communication_.updates_by_bucket) return update_buckets(sent);
    double share = 0;
    for (std::size_t b = 0; b < gradients_; ++b) share += share_of(b);
    const OpId all = build_.compute(Phase::kUpdate, workload_.update * share, 0, last_, sent);
    std::fill_n(arrived_.begin(), gradients_, all);
  }

  void update_buckets(const std::vector<OpId>& sent) {
    for (std::size_t b = 0; b < gradients_; ++b) {
      const auto& tensors = bucket(b).tensors;
      arrived_[b] = build_.compute(Phase::kUpdate, workload_.update * share_of(b), tensors.front(),
                                   tensors.back(), {sent[b]});
    }
  }

  // The second halves, in the order in which the next forward pass needs them, each behind what has
  // arrived of its gradients, or is updated.
  void gather() {
    std::vector<std::size_t> order;
    for (std::size_t b = 0; b < count(); ++b) {
      if (!exchange(b).gather.empty()) order.push_back(b);
    }
    // A module's parameters come before those of modules inside it that the same layer awaits.
    std::ranges::stable_sort(order, {}, [&](std::size_t b) {
      const bool apart = b >= gradients_;
      return std::pair(-bucket(b).ready, apart ? std::ranges::max(bucket(b).tensors) : 0);
    });
    std::size_t place = 0;
    for (const auto b : order) {
      const OpId sent = build_.gather(base_ + b, exchange(b).gather, build_.stream_of(place++),
                                      b < gradients_ ? std::vector{arrived_[b]} : updates_of(b));
      arrived_[b] = build_.receive(base_ + b, exchange(b), sent);
    }
  }

  // The gradients' buckets that hold a tensor of bucket b.
  std::vector<std::size_t> gradient_buckets_of(std::size_t b) {
    if (b < gradients_) return {b};
    if (gradient_buckets_.empty()) {
      gradient_buckets_.resize(workload_.tensors.size() + workload_.buffers.size());
      for (std::size_t g = 0; g < gradients_; ++g) {
        for (const int tensor : bucket(g).tensors) {
          gradient_buckets_[index(tensor)].push_back(g);
        }
      }
    }
    std::vector<std::size_t> list;
    for (const int tensor : bucket(b).tensors) {
      const auto& own = gradient_buckets_[index(tensor)];
      list.insert(list.end(), own.begin(), own.end());
    }
    keep_each_once(list);
    return list;
  }

  // What updates the parameters of gather bucket b.
  std::vector<OpId> updates_of(std::size_t b) {
    std::vector<OpId> list;
    for (const auto g : gradient_buckets_of(b)) list.push_back(arrived_[g]);
    keep_each_once(list);
    return list;
  }

  void update() {
    if (communication_.updates_by_bucket) return update_buckets(std::vector(arrived_));
    build_.compute(Phase::kUpdate, workload_.update, 0, last_, arrived_);
  }

  // Ticks are counted from the step's begin, which is the end of the last one's computation.
  void begin_ticks_with_the_step(OpId first_tick) {
    if (first_tick < 0) return;
    build_.plan.ops[index(first_tick)].after_previous = {build_.last_computed()};
  }

  const Workload& workload_;
  Communication communication_;  // its buckets are the plan's
  Builder build_;
  std::size_t gradients_;  // exchanges of the last micro-batch
  bool sharded_;
  int last_;  // tensor
  double all_bytes_;
  std::size_t base_ = 0;                                     // the last micro-batch's first bucket
  std::vector<std::vector<std::size_t>> buckets_of_tensor_;  // by tensor
  // Buckets of parameters whose module begins with the forward pass of a module inside it, outer
  // modules first.
  std::vector<std::size_t> ahead_;
  std::vector<std::vector<std::size_t>> gradient_buckets_;  // the gradients' buckets, by tensor
  std::vector<OpId> arrived_;                               // by bucket
  // Operations that wait for buckets of the step before.
  std::vector<std::pair<OpId, std::vector<std::size_t>>> next_step_waits_;
};

}  // namespace

Plan step_plan(const Workload& workload, Communication communication, StepCut* cut) {
  return StepPlan(workload, std::move(communication)).make(cut);
}

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

}  // namespace syncline::plan
