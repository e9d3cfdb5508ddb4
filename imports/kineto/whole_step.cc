#include <algorithm>
#include <map>

#include "imports/kineto/step.h"
#include "imports/kineto/whole_rank.h"

namespace syncline::job::kineto {
namespace {

enum class StepPart { kForward, kBackward, kUpdate, kBehind };

// Waits of the compute stream in a gap.
struct Gap {
  Nanoseconds gradients = 0;  // or parameters
  Nanoseconds stages = 0;
  Nanoseconds rest = 0;  // collectives inside the layers, and the host
  // Collectives inside the layers, and the wait for each.
  std::vector<std::pair<const TracedCollective*, Nanoseconds>> inside;
};

class WholeReader : StepWork {
 public:
  WholeReader(const Trace& trace, const TraceTimeline& timeline,
              const std::vector<Arrival>& arrivals, const StepWindow& window,
              const std::vector<RankGroup>& groups)
      : StepWork(trace, timeline, arrivals, window), groups_(groups) {
    find_passes();
    optimized_ = end_of_optimizers(last_arrival_);
    for (std::size_t i = 0; i < collectives_.size(); ++i) by_end_.push_back(i);
    std::ranges::stable_sort(by_end_, {}, [&](std::size_t i) { return collectives_[i].end; });
  }

  WholeStep read();

 private:
  Role role_of(const TracedCollective& collective) const {
    const int place = collective.message.place;
    return place < 0 ? Role::kUnknown : groups_[static_cast<std::size_t>(place)].role;
  }
  std::size_t pass_at(Nanoseconds launched) const {
    const auto behind = std::ranges::upper_bound(pass_starts_, launched);
    return behind == pass_starts_.begin()
               ? 0
               : static_cast<std::size_t>(behind - pass_starts_.begin()) - 1;
  }
  void find_passes();
  StepPart phase_of(const Item& item) const;
  void spend(const Item& of, Nanoseconds time, Step& step);
  Gap gap_of(Nanoseconds from, Nanoseconds to, bool behind, Step& step);
  void find_begin();
  void walk(Step& step);
  void note_ready(const Item& item, std::size_t pass);
  void close_step(Nanoseconds now, Step& step);
  void read_exchanges(Step& step) const;
  void read_gradients(WholeStep& whole) const;
  void read_gathers(WholeStep& whole) const;

  const std::vector<RankGroup>& groups_;
  std::vector<std::size_t> by_end_;       // places in collectives_
  std::vector<std::size_t> begins_;       // first arrival of each backward pass
  std::vector<Nanoseconds> pass_starts_;  // by pass: the host had begun with it
  Nanoseconds last_arrival_ = 0;
  Nanoseconds optimized_ = kFar;     // later work (logs, averages) is no update
  std::vector<Nanoseconds> clocks_;  // by pass, along the compute stream
  std::vector<Nanoseconds> ready_;   // by arrival, on the clock of its pass
  std::map<std::pair<std::size_t, int>, std::vector<std::size_t>> of_thread_;  // arrivals of a pass
  Nanoseconds begin_ = 0;
  Nanoseconds end_ = 0;
};

// Finds passes: the thread that called backward() waits for it. If it launches a kernel or a
// message to another stage between two arrivals, another pass has begun.
void WholeReader::find_passes() {
  std::vector<Nanoseconds> others;
  for (const Item& item : items_) {
    if (!of_engine(item)) others.push_back(item.launched);
  }
  for (const TracedCollective& collective : collectives_) {
    if (!of_engine(collective)) others.push_back(collective.launched);
  }
  std::ranges::sort(others);
  Nanoseconds end = -kFar;
  for (std::size_t i = 0; i < arrivals_.size(); ++i) {
    const auto next = std::ranges::upper_bound(others, end);
    if (i == 0 || (next != others.end() && *next < arrivals_[i].start)) {
      const auto behind = std::ranges::lower_bound(others, arrivals_[i].start);
      begins_.push_back(i);
      pass_starts_.push_back(behind == others.begin() ? -kFar : *(behind - 1) + 1);
    }
    of_thread_[{begins_.size() - 1, arrivals_[i].thread}].push_back(i);
    end = std::max(end, arrivals_[i].end);
    last_arrival_ = std::max(last_arrival_, arrivals_[i].end);
  }
  clocks_.assign(begins_.size(), 0);
  ready_.assign(arrivals_.size(), 0);
}

StepPart WholeReader::phase_of(const Item& item) const {
  if (of_engine(item)) return StepPart::kBackward;
  if (item.launched <= last_arrival_) return StepPart::kForward;
  return item.launched <= optimized_ ? StepPart::kUpdate : StepPart::kBehind;
}

// Returns the waits in a gap. The next work begins once its inputs are ready. So the collective
// that ends last is waited for last, and before it those that ended before it began. Waits for
// gradients count after all backward passes or before waits for parameters.
Gap WholeReader::gap_of(Nanoseconds from, Nanoseconds to, bool behind, Step& step) {
  Gap gap;
  if (from >= to) return gap;
  gap.rest = to - from;
  const auto end = [&](std::size_t i) { return collectives_[i].end; };
  auto next = std::ranges::upper_bound(by_end_, to + kRounding, {}, end);
  while (next != by_end_.begin() && from < to) {
    const std::size_t place = *--next;
    const TracedCollective& collective = collectives_[place];
    if (collective.end <= from) break;
    const Nanoseconds begin = std::max(from, collective.start);
    const Nanoseconds part = std::min(to, collective.end) - begin;
    const bool data = carries_gradients(role_of(collective));
    const bool sums = data && collective.message.kind != "all_gather";
    if (part <= 0 || (sums && !behind && gap.gradients == 0)) continue;
    to = begin;
    step.exchanges[place].exposed += seconds(part);
    if (data) gap.gradients += part;
    const bool message = role_of(collective) == Role::kPipeline;
    if (message) gap.stages += part;
    if (!data && !message) gap.inside.emplace_back(&collective, part);
  }
  gap.rest -= gap.gradients + gap.stages;
  return gap;
}

// Assigns an item to the first gradient of its thread and pass that settles after it.
void WholeReader::note_ready(const Item& item, std::size_t pass) {
  const auto own = of_thread_.find({pass, item.thread});
  if (own == of_thread_.end()) return;
  const auto settled = [&](std::size_t i) { return arrivals_[i].settled; };
  const auto of = std::ranges::lower_bound(own->second, item.launched, {}, settled);
  if (of != own->second.end()) ready_[*of] = std::max(ready_[*of], clocks_[pass]);
}

void WholeReader::find_begin() {
  begin_ = items_.empty() ? arrivals_.front().start : items_.front().start;
  for (const TracedCollective& collective : collectives_)
    begin_ = std::min(begin_, collective.start);
}

// Adds time of the compute stream to the phase and the pass of its item.
void WholeReader::spend(const Item& of, Nanoseconds time, Step& step) {
  const StepPart phase = phase_of(of);
  (phase == StepPart::kForward    ? step.forward
   : phase == StepPart::kBackward ? step.backward
                                  : step.update) += seconds(time);
  if (phase == StepPart::kBackward) clocks_[pass_at(of.launched)] += time;
}

// Walks along the compute stream: each gap is a wait for another stage, for gradients or
// parameters, or part of the work after it.
void WholeReader::walk(Step& step) {
  Nanoseconds now = begin_;
  bool first = true;
  for (const Item& item : items_) {
    const StepPart phase = phase_of(item);
    if (phase == StepPart::kBehind) continue;
    Gap gap = gap_of(now, item.start, phase == StepPart::kUpdate, step);
    for (const auto& [collective, part] : gap.inside) {
      spend(*collective, part, step);
      gap.rest -= part;
    }
    step.exposed += seconds(gap.gradients);
    step.stages += seconds(gap.stages);
    const bool begins = first || (phase == StepPart::kUpdate && step.update == 0);
    if (begins) step.host_gap += seconds(gap.rest);
    const Nanoseconds own =
        std::max<Nanoseconds>(0, item.end - std::max(item.start, now)) + (begins ? 0 : gap.rest);
    now = std::max(now, item.end);
    first = false;
    spend(item, own, step);
    if (phase == StepPart::kBackward) note_ready(item, pass_at(item.launched));
  }
  close_step(now, step);
}

// Ends the step; gathers after the update belong to it.
void WholeReader::close_step(Nanoseconds now, Step& step) {
  end_ = now;
  for (const TracedCollective& collective : collectives_) {
    const bool own = carries_gradients(role_of(collective)) && collective.launched > last_arrival_;
    if (own) end_ = std::max(end_, collective.end);
  }
  const Gap gap = gap_of(now, end_, true, step);
  step.exposed += seconds(gap.gradients);
  step.stages += seconds(gap.stages);
  step.host_gap += seconds(gap.rest);
}

void WholeReader::read_exchanges(Step& step) const {
  for (const TracedCollective& collective : collectives_) {
    step.exchanges.push_back(exchange_of(collective, begin_));
    step.exchanges.back().in = collective.message.place;
  }
}

// Sets the waits of each pass. The last gradient's wait includes the rest of its pass.
void WholeReader::read_gradients(WholeStep& whole) const {
  for (std::size_t p = 0; p < begins_.size(); ++p) {
    const std::size_t end = p + 1 < begins_.size() ? begins_[p + 1] : arrivals_.size();
    StagePass& pass = whole.passes.emplace_back();
    Nanoseconds now = 0;
    for (std::size_t i = begins_[p]; i < end; ++i) {
      const Nanoseconds ready = i + 1 == end ? clocks_[p] : std::max(now, ready_[i]);
      pass.waits.push_back(seconds(ready - now));
      pass.tensors.push_back(arrivals_[i].tensor);
      pass.arrived.push_back(arrivals_[i].start);
      now = ready;
    }
  }
  for (const TracedCollective& collective : collectives_) {
    whole.sent.push_back({collective.launched, pass_at(collective.launched), of_engine(collective),
                          collective.launched >= arrivals_.back().start});
  }
}

void WholeReader::read_gathers(WholeStep& whole) const {
  whole.alternates = std::ranges::any_of(items_, [&](const Item& item) {
    return phase_of(item) == StepPart::kForward && item.launched > arrivals_.front().end;
  });
  std::map<bool, std::size_t> gathers;  // key: inside backward passes
  std::size_t tail = 0;
  for (const TracedCollective& collective : collectives_) {
    const bool parameters = carries_gradients(role_of(collective)) &&
                            collective.message.kind == "all_gather" &&
                            collective.message.elements > 0;
    if (!parameters) continue;
    const bool backward = of_engine(collective);
    ++gathers[backward];
    tail += !backward && collective.launched > last_arrival_ ? 1 : 0;
    if (!whole.gathered) whole.gathered = collective.message.dtype;
  }
  whole.regathers = gathers[true] > 0 && 2 * gathers[true] >= gathers[false];
  whole.gathers_late = gathers[false] > 2 * tail;
}

WholeStep WholeReader::read() {
  WholeStep whole;
  Step& step = whole.step;
  find_begin();
  read_exchanges(step);
  walk(step);
  read_gradients(whole);
  read_gathers(whole);
  frame(begin_, end_, step);
  return whole;
}

}  // namespace

WholeStep derive_whole_step(const Trace& trace, const TraceTimeline& timeline,
                            const std::vector<Arrival>& arrivals, const StepWindow& window,
                            const std::vector<RankGroup>& groups) {
  return WholeReader(trace, timeline, arrivals, window, groups).read();
}

}  // namespace syncline::job::kineto
