// A trace in order: the compute stream of the GPU that trains, the collectives that overlap it, and
// the host's thread that launched each (by correlation).
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "imports/kineto/trace.h"
#include "imports/observed.h"

namespace syncline::job::kineto {

struct Item {
  Nanoseconds start = 0;  // on the device
  Nanoseconds end = 0;
  Nanoseconds launched = 0;  // the host's call begins; `start` if the trace does not hold it
  Nanoseconds returned = 0;  // and returns
  int thread = -1;           // of the call; -1: unknown
  Bytes bytes = 0;           // of a copy
  TracedWork work{};
};

struct TracedCollective : Item {
  TracedMessage message;  // of its kernel and of the host's calls around its launch, put together
  bool of_gradients = false;  // set by mark_gradient_exchanges
};

inline Seconds seconds(Nanoseconds time) { return 1e-9 * static_cast<double>(time); }

// Returns the pieces with `time` in [from, to). Requires pieces in order of `time`.
template <typename Piece, typename Owner>
std::span<const Piece> of_window(const std::vector<Piece>& pieces, Nanoseconds from, Nanoseconds to,
                                 Nanoseconds Owner::*time) {
  const auto first = std::ranges::lower_bound(pieces, from, {}, time);
  return {first, std::ranges::lower_bound(first, pieces.end(), to, {}, time)};
}

// Returns a collective as a step has it, in seconds from `begin` on, without gradients and waiting.
ObservedExchange exchange_of(const TracedCollective& collective, Nanoseconds begin);

// Spans of the host of one kind, asked by thread and time.
class SpanIndex {
 public:
  SpanIndex() = default;
  explicit SpanIndex(std::vector<HostSpan> spans);

  // Returns the innermost span on that thread around that time; null: none.
  const HostSpan* around(int thread, Nanoseconds time) const;
  // Returns all of them, the innermost first. At most a handful nest.
  std::vector<const HostSpan*> all_around(int thread, Nanoseconds time) const;
  const std::vector<HostSpan>& spans() const { return spans_; }  // by thread, then start

 private:
  std::vector<HostSpan> spans_;
};

struct TraceTimeline {
  explicit TraceTimeline(const Trace& trace);

  // Returns items that the host launched in [from, to), in the device's order.
  std::vector<Item> launched_items(Nanoseconds from, Nanoseconds to) const;
  std::vector<TracedCollective> launched_collectives(Nanoseconds from, Nanoseconds to) const;
  // Returns the time without a kernel, copy or collective on any stream.
  Nanoseconds idle(Nanoseconds from, Nanoseconds to) const;

  int device = 0;                      // the GPU that trains: the one with most kernels
  int devices = 0;                     // with kernels
  std::int64_t stream = 0;             // of compute: the one with most kernels
  bool collectives_on_device = false;  // false: those of the host's calls, if there are any
  // Kernels of the compute stream, and those among them that are left out, as no call launched
  // them: the host made it before the profile began.
  std::size_t kernels_launched = 0;
  std::size_t kernels_alone = 0;
  std::size_t collectives_before = 0;  // collectives left out for the same reason

  SpanIndex copies_in;  // Host::kCopyIn and kCopyInHook
  SpanIndex copies_out;
  SpanIndex engine;  // Host::kEngine and kGradient
  SpanIndex communication;
  std::vector<Item> compute;                  // by launch
  std::vector<TracedCollective> collectives;  // by launch

 private:
  void find_busy(const Trace& trace);
  // Spans of activity, in order, with idle time between them.
  std::vector<std::pair<Nanoseconds, Nanoseconds>> busy_;
};

// The steps of a trace: the host's time from the launch of their first work to the last.

// AccumulateGrad of one gradient.
struct Arrival {
  Nanoseconds start = 0;    // the host begins to take it
  Nanoseconds settled = 0;  // work launched until here may have produced it
  Nanoseconds end = 0;
  int thread = 0;
  int tensor = -1;  // place in Trace::tensors
};

// Returns arrivals by start. The engine's call and the node in it are one, if the trace has both.
std::vector<Arrival> arrivals_of(const Trace& trace);

// Marks the gradients' all-reduces of a plain data-parallel job: those that the reducer's hooks
// launched, inside an arrival. Without any, all after a step's first arrival count: the job sums
// after the backward pass by itself, or its torch records no engine calls. SyncBatchNorm has
// others, between arrivals.
void mark_gradient_exchanges(TraceTimeline& timeline, const std::vector<Arrival>& arrivals);

struct StepWindow {
  int number = 0;
  Nanoseconds start = 0;
  Nanoseconds end = 0;
  bool marked = true;  // by the profiler, so that its length is the host's
  int profiled = 1;    // ProfilerSteps in it: those without an exchange are joined to the next
  // Host's time at which the next step begins and ends; both 0: none was recorded.
  Nanoseconds next_start = 0;
  Nanoseconds next_end = 0;
};

// Returns the windows of ProfilerStep#N. Without them, or if they cut an Optimizer.step that runs
// the passes, the host's time is cut after every Optimizer.step, else before every
// DistributedDataParallel.forward, else it is one step. Windows without an arrival are left out and
// named in `notes`; those that do not exchange although others do are folded into the next one that
// does.
std::vector<StepWindow> windows_of(const Trace& trace, const TraceTimeline& timeline,
                                   const std::vector<Arrival>& arrivals,
                                   std::vector<std::string>& notes);

// Returns "3, 5, 6".
std::string list_numbers(const std::vector<int>& numbers);

}  // namespace syncline::job::kineto
