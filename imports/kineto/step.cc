#include "imports/kineto/step.h"

#include <algorithm>
#include <functional>
#include <map>

namespace syncline::job::kineto {
namespace {

// A part of a wait of the compute stream for collectives.
struct Waiting {
  Nanoseconds begin = 0;
  Nanoseconds end = 0;
  const TracedCollective* collective = nullptr;  // the running one; null: none is sent yet
};

class StepReader : StepWork {
 public:
  using StepWork::StepWork;

  DerivedStep read();

 private:
  bool of_forward(const Item& item) const {
    if (one_thread_) return !of_engine(item) && !copied_out(item);
    return main_ >= 0 ? item.thread == main_ : !of_engine(item);
  }
  bool copied_out(const Item& item) const {
    return timeline_.copies_out.around(item.thread, item.launched) != nullptr;
  }
  void find_passes();
  void find_bounds();
  void find_broadcast();
  void find_waiting();
  void add_waiting(Nanoseconds from, Nanoseconds to, std::vector<const TracedCollective*> ended);
  struct Arrived {
    const Arrival* arrival = nullptr;
    Nanoseconds ready = -kFar;
    Nanoseconds copied = -kFar;
  };
  std::vector<Arrived> find_arrived(Step& step) const;
  void read_gradients(Step& step);
  void read_tail(Step& step);
  void read_exchanges(Step& step);
  struct Waited {
    Nanoseconds exposed = 0;  // collectives run
    Nanoseconds idle = 0;     // no collective runs yet
  };
  Waited waited(Nanoseconds from, Nanoseconds to) const;

  std::vector<Waiting> waiting_;

  DerivedStep derived_;
  std::size_t first_arrival_ = 0;  // index of the first arrival of the first exchanging pass
  Nanoseconds engine_begins_ = 0;  // the host's last launch of the forward pass before it
  // Times on the device.
  Nanoseconds forward_ = 0;
  Nanoseconds broadcast_begin_ = 0;  // of the buffers, before the model's own kernels
  Nanoseconds broadcast_end_ = 0;
  Nanoseconds backward_ = 0;
  Nanoseconds backward_end_ = 0;
  Nanoseconds update_ = 0;
  Nanoseconds update_end_ = 0;
};

// Counts backward passes: a kernel of the forward pass between two arrivals begins another one.
// Counts those with an exchange after them. Sets the first arrival of the first of these, and the
// launch of the last forward kernel before it.
void StepReader::find_passes() {
  std::vector<Nanoseconds> forwards;
  for (const Item& item : items_) {
    if (item.work == TracedWork::kKernel && of_forward(item)) forwards.push_back(item.launched);
  }
  std::ranges::sort(forwards);
  std::vector<std::size_t> begins = {0};
  Nanoseconds end = arrivals_.front().end;
  for (std::size_t i = 1; i < arrivals_.size(); ++i) {
    const auto next = std::ranges::upper_bound(forwards, end);
    if (next != forwards.end() && *next < arrivals_[i].start) begins.push_back(i);
    end = std::max(end, arrivals_[i].end);
  }
  derived_.passes = static_cast<int>(begins.size());
  std::vector<bool> exchanging(begins.size(), false);
  for (const TracedCollective& collective : collectives_) {
    const auto behind = std::ranges::upper_bound(begins, collective.launched, {},
                                                 [&](std::size_t i) { return arrivals_[i].start; });
    if (!collective.of_gradients || behind == begins.begin()) continue;
    exchanging[static_cast<std::size_t>(behind - begins.begin()) - 1] = true;
  }
  const auto first = std::ranges::find(exchanging, true);
  derived_.exchanging_passes = std::max(static_cast<int>(std::ranges::count(exchanging, true)), 1);
  first_arrival_ = first == exchanging.end()
                       ? begins.back()
                       : begins[static_cast<std::size_t>(first - exchanging.begin())];
  const auto behind = std::ranges::lower_bound(forwards, arrivals_[first_arrival_].start);
  engine_begins_ = behind == forwards.begin() ? window_.start : *(behind - 1);
}

void StepReader::find_bounds() {
  Nanoseconds last_arrival = arrivals_.front().start;
  for (const Arrival& arrival : arrivals_) last_arrival = std::max(last_arrival, arrival.start);
  // Work after the optimizer (logs, an average of weights) is not part of the update.
  const Nanoseconds optimizer_end = end_of_optimizers(last_arrival);
  forward_ = backward_ = update_ = kFar;
  backward_end_ = update_end_ = -kFar;
  for (const Item& item : items_) {
    const bool kernel = item.work == TracedWork::kKernel;
    if (kernel) forward_ = std::min(forward_, item.start);
    if (of_engine(item) && item.launched > engine_begins_ && !copied_out(item)) {
      backward_ = std::min(backward_, item.start);
      backward_end_ = std::max(backward_end_, item.end);
    }
    if (kernel && of_forward(item) && item.launched > last_arrival &&
        item.launched <= optimizer_end) {
      update_ = std::min(update_, item.start);
      update_end_ = std::max(update_end_, item.end);
    }
  }
  // A missing phase takes no time, and no phase begins before the previous one ends.
  if (forward_ == kFar) forward_ = items_.empty() ? arrivals_.front().start : items_.front().start;
  if (backward_ == kFar) backward_ = backward_end_ = forward_;
  backward_ = std::max(backward_, forward_);
  backward_end_ = std::max(backward_end_, backward_);
}

// Finds DDP's broadcast of buffers when its forward pass is called: a few kernels join the buffers
// of each number format, a broadcast follows, then single copies back. A broadcast after more
// kernels is the model's.
void StepReader::find_broadcast() {
  broadcast_begin_ = broadcast_end_ = forward_;
  Nanoseconds called = window_.start;
  for (const HostSpan& span : spans()) {
    if (span.kind != Host::kForward) continue;
    called = span.start;
    break;
  }
  constexpr int kJoining = 8;  // kernels before one broadcast
  const auto behind_call =
      std::ranges::find_if(items_, [&](const Item& one) { return one.launched >= called; });
  auto item = behind_call;
  Nanoseconds last = -kFar;
  for (const TracedCollective& collective : collectives_) {
    const bool early = collective.launched >= called && collective.launched <= engine_begins_;
    if (!early || collective.message.kind != "broadcast") continue;
    int joining = 0;
    auto next = item;
    for (; next != items_.end() && next->launched < collective.launched; ++next) {
      joining += next->work == TracedWork::kKernel ? 1 : 0;
    }
    if (joining > kJoining) break;
    item = next;
    last = collective.end;
  }
  if (last == -kFar) return;
  for (; item != items_.end() && item->work != TracedWork::kKernel; ++item) last = item->end;
  if (item != items_.end()) last = std::min(last, item->start);
  // Kernels before the call belong to the forward pass, as does any preparation of the input.
  const Nanoseconds begin = behind_call != items_.end() ? behind_call->start : forward_;
  broadcast_begin_ = std::clamp(begin, forward_, backward_);
  broadcast_end_ = std::clamp(last, broadcast_begin_, backward_);
}

// Finds waits for collectives, from the earliest possible begin of the next work (the previous one
// has ended, the host has called) to its real begin. A collective must end in that time: the stream
// resumes then. Before the collective begins, the wait is for its sender.
void StepReader::find_waiting() {
  std::vector<const TracedCollective*> by_end;
  for (const TracedCollective& collective : collectives_) by_end.push_back(&collective);
  std::ranges::stable_sort(by_end, {}, [](const TracedCollective* c) { return c->end; });
  Nanoseconds busy = -kFar;
  for (const Item& item : items_) {
    const Nanoseconds from = std::max(busy, item.returned);
    busy = std::max(busy, item.end);
    if (from >= item.start) continue;
    const auto end = [](const TracedCollective* c) { return c->end; };
    const auto first = std::ranges::upper_bound(by_end, from, {}, end);
    const auto behind =
        std::ranges::upper_bound(first, by_end.end(), item.start + kRounding, {}, end);
    add_waiting(from, item.start, {first, behind});
  }
}

// Adds waits for each collective while it runs; for the earlier one if two do.
void StepReader::add_waiting(Nanoseconds from, Nanoseconds to,
                             std::vector<const TracedCollective*> ended) {
  std::ranges::stable_sort(ended, {}, [](const TracedCollective* c) { return c->start; });
  for (const TracedCollective* collective : ended) {
    const Nanoseconds begin = std::max(from, collective->start);
    const Nanoseconds end = std::min(to, collective->end);
    if (begin >= end) continue;
    if (begin > from) waiting_.push_back({from, begin, nullptr});
    waiting_.push_back({begin, end, collective});
    from = end;
  }
}

StepReader::Waited StepReader::waited(Nanoseconds from, Nanoseconds to) const {
  Waited sum;
  // Waits are in order and do not overlap.
  for (auto wait = std::ranges::upper_bound(waiting_, from, {}, &Waiting::end);
       wait != waiting_.end() && wait->begin < to; ++wait) {
    const Nanoseconds part = std::min(wait->end, to) - std::max(wait->begin, from);
    (wait->collective == nullptr ? sum.idle : sum.exposed) += part;
  }
  return sum;
}

// Finds when the device has each gradient, and its copy in the bucket. An item goes to the first
// gradient of its thread that settles after it, a copy to the last that began before it.
std::vector<StepReader::Arrived> StepReader::find_arrived(Step& step) const {
  std::vector<Arrived> arrived(arrivals_.size() - first_arrival_);
  std::map<int, std::vector<std::size_t>> of_thread;
  for (std::size_t i = 0; i < arrived.size(); ++i) {
    arrived[i].arrival = &arrivals_[first_arrival_ + i];
    of_thread[arrived[i].arrival->thread].push_back(i);
  }
  const auto start = [&](std::size_t i) { return arrived[i].arrival->start; };
  const auto settled = [&](std::size_t i) { return arrived[i].arrival->settled; };
  for (const Item& item : items_) {
    const auto own = of_thread.find(item.thread);
    if (own == of_thread.end() || item.launched <= engine_begins_ || copied_out(item)) continue;
    const auto& gradients = own->second;
    if (const HostSpan* copy = timeline_.copies_in.around(item.thread, item.launched)) {
      const auto behind = std::ranges::upper_bound(gradients, copy->start, {}, start);
      if (behind == gradients.begin()) continue;
      Arrived& gradient = arrived[*(behind - 1)];
      gradient.copied = std::max(gradient.copied, item.end);
      step.copy_kernels += seconds(item.end - item.start);
    } else if (const auto of = std::ranges::lower_bound(gradients, item.launched, {}, settled);
               of != gradients.end()) {
      arrived[*of].ready = std::max(arrived[*of].ready, item.end);
    }
  }
  return arrived;
}

// Sets waits along the compute stream: a gradient's wait counts from the previous one's end, and
// its copy into the bucket follows.
void StepReader::read_gradients(Step& step) {
  Nanoseconds now = backward_;
  for (const Arrived& gradient : find_arrived(step)) {
    Gradient& entry = step.gradients.emplace_back();
    const Nanoseconds ready = std::max(now, gradient.ready);
    entry.wait = seconds(ready - now);
    now = std::max(ready, gradient.copied);
    entry.copy_in = seconds(now - ready);
    step.copy_in += entry.copy_in;
    derived_.complete.push_back(seconds(now - forward_));
    derived_.tensors.push_back(gradient.arrival->tensor);
  }
}

// Divides the time after the backward pass: copies out of the buckets with delays by the host,
// waiting for collectives, waiting for the host, the update.
void StepReader::read_tail(Step& step) {
  Nanoseconds now = backward_end_;
  const HostSpan* last_copy = nullptr;
  for (const Item& item : items_) {
    const HostSpan* copy = timeline_.copies_out.around(item.thread, item.launched);
    if (copy != nullptr && item.launched > engine_begins_) {
      if (copy != last_copy) derived_.copies_out.emplace_back();
      derived_.copies_out.back().bytes += item.bytes;
      step.copy_kernels += seconds(item.end - item.start);
      last_copy = copy;
    }
    if (item.end <= now || item.start >= update_) continue;
    const Waited wait = waited(now, item.start);
    const Seconds rest = seconds(item.end - now - wait.exposed - wait.idle);
    step.exposed += seconds(wait.exposed);
    step.host_gap += seconds(wait.idle);
    now = item.end;
    if (copy == nullptr) {
      step.host_gap += rest;
      continue;
    }
    step.copy_out += rest;
    if (copy == last_copy) derived_.copies_out.back().time += rest;
  }
  if (update_ == kFar) update_ = update_end_ = now;
  update_ = std::max(update_, now);
  update_end_ = std::max(update_end_, update_);
  const Nanoseconds exposed = waited(now, update_).exposed;
  step.exposed += seconds(exposed);
  step.host_gap += seconds(update_ - now - exposed);
}

void StepReader::read_exchanges(Step& step) {
  for (const TracedCollective& collective : collectives_) {
    step.exchanges.push_back(exchange_of(collective, forward_));
    const TracedMessage& message = collective.message;
    const auto first = arrivals_.begin() + static_cast<std::ptrdiff_t>(first_arrival_);
    const auto behind =
        std::ranges::upper_bound(first, arrivals_.end(), collective.launched, {}, &Arrival::start);
    derived_.sent.push_back({collective.of_gradients && behind != first, message.dtype.has_value(),
                             static_cast<std::size_t>(behind - first)});
  }
  for (const Waiting& wait : waiting_) {
    if (wait.collective == nullptr) continue;
    // DDP waits for its buckets only after the backward pass: an earlier stop of the stream has
    // another reason.
    if (wait.collective->of_gradients && wait.end <= backward_end_) continue;
    const auto place = static_cast<std::size_t>(wait.collective - collectives_.data());
    const Nanoseconds begin =
        wait.collective->of_gradients ? std::max(wait.begin, backward_end_) : wait.begin;
    step.exchanges[place].exposed += seconds(wait.end - begin);
  }
}

DerivedStep StepReader::read() {
  find_passes();
  find_bounds();
  find_broadcast();
  find_waiting();
  Step& step = derived_.step;
  read_gradients(step);
  read_tail(step);
  read_exchanges(step);
  step.broadcast = seconds(broadcast_end_ - broadcast_begin_);
  step.forward = seconds(backward_ - forward_ - (broadcast_end_ - broadcast_begin_));
  step.backward = seconds(backward_end_ - backward_);
  step.update = seconds(update_end_ - update_);
  frame(forward_, update_end_, step);
  for (const HostSpan& span : spans()) {
    if (span.kind == Host::kForward) ++derived_.forwards;
    if (span.kind == Host::kCopyIn) derived_.copied_in = true;
    if (span.kind == Host::kCopyInHook) derived_.copied_in = derived_.hooked = true;
  }
  return std::move(derived_);
}

}  // namespace

StepWork::StepWork(const Trace& trace, const TraceTimeline& timeline,
                   const std::vector<Arrival>& arrivals, const StepWindow& window)
    : trace_(trace),
      timeline_(timeline),
      window_(window),
      items_(timeline.launched_items(window.start, window.end)),
      collectives_(timeline.launched_collectives(window.start, window.end)),
      arrivals_(of_window(arrivals, window.start, window.end, &Arrival::start)) {
  for (const Arrival& arrival : arrivals_) engine_.push_back(arrival.thread);
  std::ranges::sort(engine_);
  engine_.erase(std::unique(engine_.begin(), engine_.end()), engine_.end());
  for (const HostSpan& span : spans()) {
    const bool drives =
        span.kind == Host::kStep || span.kind == Host::kOptimizer || span.kind == Host::kForward;
    if (drives && main_ < 0) main_ = span.thread;
  }
  one_thread_ = std::ranges::binary_search(engine_, main_);
}

bool StepWork::of_engine(const Item& item) const {
  if (one_thread_) return timeline_.engine.around(item.thread, item.launched) != nullptr;
  return std::ranges::binary_search(engine_, item.thread);
}

Nanoseconds StepWork::end_of_optimizers(Nanoseconds last_arrival) const {
  Nanoseconds end = -kFar;
  for (const HostSpan& span : spans()) {
    const bool behind = span.kind == Host::kOptimizer && span.end > last_arrival;
    if (behind) end = std::max(end, span.end);
  }
  return end == -kFar ? kFar : end;
}

void StepWork::frame(Nanoseconds begin, Nanoseconds end, Step& step) const {
  step.number = window_.number;
  step.gpu = seconds(end - begin);
  step.idle = seconds(timeline_.idle(begin, end));
  if (window_.marked) step.cpu = seconds(window_.end - window_.start);
  step.between = -1;
  Nanoseconds next = kFar;
  Nanoseconds launched = kFar;
  for (const Item& item : timeline_.launched_items(window_.next_start, window_.next_end)) {
    if (item.work != TracedWork::kKernel) continue;
    next = std::min(next, item.start);
    launched = std::min(launched, item.launched);
  }
  if (next == kFar) return;
  name_time_between(launched, step);
  step.between = seconds(std::max(next - end, Nanoseconds{0}));
  step.between_idle = seconds(timeline_.idle(end, next));
}

void StepWork::name_time_between(Nanoseconds launched, Step& step) const {
  Nanoseconds behind = -kFar;
  for (const Item& item : items_) behind = std::max(behind, item.launched);
  std::map<std::string, Nanoseconds> times;
  Nanoseconds counted_to = behind;  // of nested ranges the outermost counts
  for (const HostSpan& span : of_window(trace_.host, behind, launched, &HostSpan::start)) {
    const bool ours = main_ < 0 || span.thread == main_;
    if (span.kind != Host::kNamed || !ours || span.start < counted_to || span.end > launched)
      continue;
    times[trace_.names[static_cast<std::size_t>(span.number)]] += span.end - span.start;
    counted_to = span.end;
  }
  for (const auto& [name, time] : times) step.by_host.emplace_back(name, seconds(time));
  std::ranges::stable_sort(step.by_host, std::greater<>(),
                           [](const auto& one) { return one.second; });
}

void add_time_between(const std::vector<Step*>& steps) {
  std::vector<const Step*> known;
  for (const Step* step : steps) {
    if (step->between >= 0) known.push_back(step);
  }
  std::ranges::stable_sort(known, {}, [](const Step* step) { return step->between; });
  const Step usual = known.empty() ? Step() : *known[(known.size() - 1) / 2];
  for (Step* step : steps) {
    if (step->between < 0) {
      step->between = usual.between;
      step->between_idle = usual.between_idle;
      step->by_host = usual.by_host;
    }
    step->gpu += step->between;
  }
}

std::map<CollectiveId, Shares> shares_of(std::vector<Rank>& ranks, int number, bool grouped) {
  std::map<CollectiveId, Shares> shares;
  for (Rank& rank : ranks) {
    const auto step = std::ranges::find(rank.steps, number, &Step::number);
    if (step == rank.steps.end()) continue;
    std::map<std::tuple<int, std::string, std::string>, std::size_t> counts;
    for (ObservedExchange& exchange : step->exchanges) {
      if (grouped && exchange.in < 0) continue;
      const std::tuple of(exchange.in, exchange.kind, grouped ? "" : exchange.group);
      const CollectiveId id = std::tuple_cat(of, std::tuple(counts[of]++));
      shares[id].emplace_back(&exchange, rank.rank);
    }
  }
  return shares;
}

std::optional<Skew> measure_skew(const Shares& shares) {
  const ObservedExchange& first = *shares.front().first;
  const bool agree = std::ranges::all_of(shares, [&](const auto& share) {
    // In an all-to-all, ranks may send different amounts.
    return first.kind == "all_to_all" || share.first->elements == first.elements;
  });
  if (!agree) return std::nullopt;
  const auto duration = [](const auto& share) { return share.first->duration; };
  const auto& least = *std::ranges::min_element(shares, {}, duration);
  const Skew skew{0, duration(least), duration(std::ranges::max(shares, {}, duration)),
                  least.second};
  for (const auto& share : shares) share.first->time = skew.least;
  return skew;
}

DerivedStep derive_step(const Trace& trace, const TraceTimeline& timeline,
                        const std::vector<Arrival>& arrivals, const StepWindow& window) {
  return StepReader(trace, timeline, arrivals, window).read();
}

}  // namespace syncline::job::kineto
