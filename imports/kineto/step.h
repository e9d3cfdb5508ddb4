// One step on the device, divided: forward, backward, copies, waiting, update, which add up.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "imports/kineto/timeline.h"
#include "imports/observed.h"

namespace syncline::job::kineto {

// The sources of a step: its work, the arrivals of its gradients, and the thread that drives it.
class StepWork {
 public:
  StepWork(const Trace& trace, const TraceTimeline& timeline, const std::vector<Arrival>& arrivals,
           const StepWindow& window);

 protected:
  static constexpr Nanoseconds kRounding = 2000;  // traces of whole microseconds round both ends

  // Returns the host's spans that begin in the step.
  std::span<const HostSpan> spans() const {
    return of_window(trace_.host, window_.start, window_.end, &HostSpan::start);
  }
  bool of_engine(const Item& item) const;
  // Returns the end of the optimizers that end after the last arrival; kFar: there is none.
  Nanoseconds end_of_optimizers(Nanoseconds last_arrival) const;
  // Sets number, host time and idle time of the step that spans [begin, end) on the device, and the
  // time to the next step.
  void frame(Nanoseconds begin, Nanoseconds end, Step& step) const;
  // Sets the host's work from the last launch of this step to the first of the next, by name.
  void name_time_between(Nanoseconds launched, Step& step) const;

  const Trace& trace_;
  const TraceTimeline& timeline_;
  const StepWindow& window_;
  std::vector<Item> items_;
  std::vector<TracedCollective> collectives_;
  std::span<const Arrival> arrivals_;
  std::vector<int> engine_;  // threads of the autograd engine
  int main_ = -1;            // the thread that drives the step; -1: unknown
  bool one_thread_ = false;  // it is the engine too: its calls show the backward pass then
};

// A copy out of a bucket. Such copies show sizes of gradients, as do exchanges.
struct CopyOut {
  Bytes bytes = 0;  // 0: a kernel copied; its bytes are unknown
  Seconds time = 0;
};

// An exchange's facts for the sizes of gradients.
struct Sent {
  bool of_gradients = false;
  bool typed = false;       // its number format is known
  std::size_t arrived = 0;  // gradients that had arrived when the host launched it
};

struct DerivedStep {
  Step step;
  std::vector<int> tensors;         // by gradient: place in Trace::tensors; -1: none
  std::vector<Seconds> complete;    // by gradient: it is ready and copied in
  std::vector<CopyOut> copies_out;  // in the device's order
  std::vector<Sent> sent;           // by exchange
  int passes = 1;                   // backward passes in the step
  int exchanging_passes = 1;        // backward passes after which gradients are exchanged
  int forwards = 0;                 // calls of DistributedDataParallel.forward
  bool copied_in = false;           // the reducer copied gradients into buckets
  bool hooked = false;              // it did so for a communication hook
  bool assumed_fp32 = false;        // no event names a gradient's number format
};

// Returns the step; its gradients have no sizes yet. Requires arrivals in the window.
DerivedStep derive_step(const Trace& trace, const TraceTimeline& timeline,
                        const std::vector<Arrival>& arrivals, const StepWindow& window);

// Sets the time to the next step, if unrecorded, to its usual length, and adds it to all steps: a
// step lasts from its start to the next one's.
void add_time_between(const std::vector<Step*>& steps);

// Removes steps with another shape than most. Returns their numbers.
template <typename Derived, typename Shape>
std::vector<int> leave_out_odd(std::vector<Derived>& steps, Shape shape_of) {
  std::map<decltype(shape_of(steps.front())), std::size_t> counts;
  for (const Derived& derived : steps) ++counts[shape_of(derived)];
  const auto usual =
      std::ranges::max_element(counts, {}, [](const auto& count) { return count.second; })->first;
  std::vector<int> odd;
  std::erase_if(steps, [&](const Derived& derived) {
    if (shape_of(derived) == usual) return false;
    odd.push_back(derived.step.number);
    return true;
  });
  return odd;
}

// A collective on all ranks: place of its group in Observed::groups or its name, its kind, and its
// index among those in the step.
using CollectiveId = std::tuple<int, std::string, std::string, std::size_t>;
using Shares = std::vector<std::pair<ObservedExchange*, int>>;  // one per rank
// Returns the ranks' shares. `grouped`: only of collectives with a known group.
std::map<CollectiveId, Shares> shares_of(std::vector<Rank>& ranks, int number, bool grouped);

// Returns the skew of a collective, and sets its time on all ranks to that on the last one. Nullopt
// if the ranks disagree about its size.
std::optional<Skew> measure_skew(const Shares& shares);

}  // namespace syncline::job::kineto
