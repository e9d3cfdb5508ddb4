// One step on the device, taken apart: forward, backward, copies, waiting, update, which add up.
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

// What a step is read from: its work, the arrivals of its gradients, and who drives it.
class StepWork {
 public:
  StepWork(const Trace& trace, const TraceTimeline& timeline, const std::vector<Arrival>& arrivals,
           const StepWindow& window);

 protected:
  static constexpr Nanoseconds kRounding = 2000;  // traces of whole microseconds round both ends

  // Of the host, that begin in the step.
  std::span<const HostSpan> spans() const {
    return of_window(trace_.host, window_.start, window_.end, &HostSpan::start);
  }
  bool of_engine(const Item& item) const;
  // When the optimizers end that begin behind the last arrival; kFar: there is none.
  Nanoseconds optimized(Nanoseconds last_arrival) const;
  // Number, host's time and idle time of the step that lasts so long on the device, and what passes
  // behind it.
  void frame(Nanoseconds begin, Nanoseconds end, Step& step) const;
  // What the host does from its last launch of this step to its first of the next, by name.
  void name_time_between(Nanoseconds launched, Step& step) const;

  const Trace& trace_;
  const TraceTimeline& timeline_;
  const StepWindow& window_;
  std::vector<Item> items_;
  std::vector<TracedCollective> collectives_;
  std::span<const Arrival> arrivals_;
  std::vector<int> engine_;  // threads of the autograd engine
  int main_ = -1;            // the thread that drives the step; -1: not told
  bool one_thread_ = false;  // it runs the engine too: its calls tell the backward pass then
};

// What the sizes of gradients may be read from, beside Step::gradients and Step::exchanges.
struct CopyOut {
  Bytes bytes = 0;  // 0: a kernel copied, which does not tell
  Seconds time = 0;
};

struct Sent {
  bool of_gradients = false;
  bool typed = false;       // its number format is told
  std::size_t arrived = 0;  // gradients that had arrived when the host launched it
};

struct DerivedStep {
  Step step;
  std::vector<int> tensors;         // of each gradient: place in Trace::tensors; -1: none
  std::vector<Seconds> complete;    // of each gradient: ready and copied in
  std::vector<CopyOut> copies_out;  // in the device's order
  std::vector<Sent> sent;           // of each exchange
  int passes = 1;                   // backward passes in it
  int exchanging_passes = 1;        // of these, those behind which gradients are exchanged
  int forwards = 0;                 // calls of DistributedDataParallel.forward
  bool copied_in = false;           // by the reducer, whatever it took
  bool hooked = false;              // by its way for communication hooks
  bool assumed_fp32 = false;        // no event tells a gradient's number format
};

// Requires arrivals in the window. Gradients have no sizes yet.
DerivedStep derive_step(const Trace& trace, const TraceTimeline& timeline,
                        const std::vector<Arrival>& arrivals, const StepWindow& window);

// Gives the steps behind which none was recorded the usual time between two, and lengthens all by
// it: a step reaches from its begin to the next one's.
void add_time_between(const std::vector<Step*>& steps);

// Steps of another shape than most have are left out. Their numbers.
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

// What ranks took for the same collective: of one group, by its place in Observed::groups or its
// name, one kind, and the same place among those in the step.
using CollectiveId = std::tuple<int, std::string, std::string, std::size_t>;
using Shares = std::vector<std::pair<ObservedExchange*, int>>;  // of a rank each
// `grouped`: of those whose group is told.
std::map<CollectiveId, Shares> shares_of(std::vector<Rank>& ranks, int number, bool grouped);

// What it took on the rank that came last, which becomes its time on all. Nothing where the ranks
// disagree on what they sent.
std::optional<Skew> matched(const Shares& shares);

}  // namespace syncline::job::kineto
