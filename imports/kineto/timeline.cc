#include "imports/kineto/timeline.h"

#include <algorithm>
#include <map>

namespace syncline::job::kineto {
namespace {

std::vector<HostSpan> of_kind(const Trace& trace, std::initializer_list<Host> kinds) {
  std::vector<HostSpan> spans;
  for (const HostSpan& span : trace.host) {
    if (std::ranges::find(kinds, span.kind) != kinds.end()) spans.push_back(span);
  }
  return spans;
}

// Returns the launch of this work. A correlation may appear twice (counters begin again): the
// latest call before the work is its own, or the first one if clocks disagree.
const KernelLaunch* launch_of(const Trace& trace, const DeviceEvent& event) {
  if (event.correlation < 0) return nullptr;
  const auto behind = std::ranges::upper_bound(
      trace.launches, std::pair(event.correlation, event.start), {},
      [](const KernelLaunch& launch) { return std::pair(launch.correlation, launch.start); });
  const auto is_its = [&](auto launch) {
    return launch != trace.launches.end() && launch->correlation == event.correlation;
  };
  if (behind != trace.launches.begin() && is_its(behind - 1)) return &*(behind - 1);
  return is_its(behind) ? &*behind : nullptr;
}

// Device work that was launched before the profile began: its stream runs it ahead of all work with
// a launch, or it starts before the host's first launch. The first rule does not hold for a stream
// that lost later launches.
class Before {
 public:
  explicit Before(const Trace& trace) {
    for (const KernelLaunch& launch : trace.launches) first_ = std::min(first_, launch.start);
    for (const DeviceEvent& event : trace.device) {
      const bool launched = launch_of(trace, event) != nullptr;
      Stream& stream = streams_[{event.device, event.stream}];
      if (launched) stream.first = std::min(stream.first, event.start);
      stream.lost = stream.lost || (!launched && stream.first < kFar);
    }
  }

  // Requires that the event has no launch.
  bool holds(const DeviceEvent& event) const {
    const Stream& stream = streams_.at({event.device, event.stream});
    const bool ahead = stream.first < kFar && !stream.lost && event.start < stream.first;
    return ahead || (first_ < kFar && event.start < first_);
  }

 private:
  struct Stream {
    Nanoseconds first = kFar;  // start of the first that was launched
    bool lost = false;         // a later one has no launch
  };
  Nanoseconds first_ = kFar;
  std::map<std::pair<int, std::int64_t>, Stream> streams_;
};

template <typename Key>
Key commonest(const std::map<Key, std::size_t>& counts) {
  const auto most = std::ranges::max_element(
      counts, [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == counts.end() ? Key{} : most->first;
}

Item item_of(const DeviceEvent& event, const KernelLaunch* launch) {
  Item item{event.start, event.end, event.start, event.start, -1, event.bytes, event.work};
  if (launch != nullptr) {
    item.launched = launch->start;
    item.returned = launch->end;
    item.thread = launch->thread;
    if (event.work == TracedWork::kCopy && item.bytes == 0) item.bytes = launch->bytes;
  }
  return item;
}

// Fills the gaps of a message from another source.
void complete(TracedMessage& message, const TracedMessage& other) {
  if (!message.told && !other.kind.empty()) message.kind = other.kind;
  message.told = message.told || !other.kind.empty();
  if (message.group.empty()) message.group = other.group;
  if (message.place < 0) message.place = other.place;
  if (message.backend.empty()) message.backend = other.backend;
  if (message.ranks == 0) message.ranks = other.ranks;
  if (message.elements == 0) message.elements = other.elements;
  if (message.given == 0) message.given = other.given;
  if (message.got == 0) message.got = other.got;
  if (!message.dtype) message.dtype = other.dtype;
}

// Returns the message of a collective: `own`, the kernel's if it has one, with gaps filled from the
// calls around the launch.
TracedMessage message_at(const Trace& trace, const SpanIndex& calls, const Item& item,
                         const TracedMessage* own) {
  TracedMessage message = own != nullptr ? *own : TracedMessage{};
  for (const HostSpan* call : calls.all_around(item.thread, item.launched)) {
    complete(message, trace.messages[static_cast<std::size_t>(call->number)]);
  }
  return message;
}

// Returns collectives that left no kernel. Gloo's last from the call to the completion; NCCL's have
// no time, as the trace holds only their calls. Calls nest (c10d::, record_param_comms, nccl:): the
// outermost counts for all.
std::vector<TracedCollective> collectives_of_calls(const Trace& trace, const SpanIndex& calls) {
  std::vector<TracedCollective> found;
  bool backends = false;
  for (auto call = calls.spans().begin(); call != calls.spans().end();) {
    TracedCollective collective;
    collective.start = collective.launched = call->start;
    collective.end = collective.returned = call->end;
    collective.thread = call->thread;
    for (; call != calls.spans().end() && call->thread == collective.thread &&
           call->start <= collective.end;
         ++call) {
      complete(collective.message, trace.messages[static_cast<std::size_t>(call->number)]);
    }
    if (collective.message.backend != "gloo") collective.end = collective.start;
    if (collective.message.kind.empty() || collective.message.kind == "barrier") continue;
    backends = backends || !collective.message.backend.empty();
    found.push_back(std::move(collective));
  }
  // If a backend names its own calls, c10d's calls on other threads are duplicates.
  std::erase_if(found,
                [&](const TracedCollective& c) { return backends && c.message.backend.empty(); });
  return found;
}

// Assigns kernels without a traced launch (cooperative ones on AMD, say) to the calls without a
// kernel, in order, if their numbers are equal.
void find_lost_calls(std::vector<TracedCollective>& collectives,
                     std::vector<TracedCollective> calls) {
  std::vector<TracedCollective*> lost;
  std::vector<std::pair<int, Nanoseconds>> found;
  for (TracedCollective& collective : collectives) {
    if (collective.thread < 0) lost.push_back(&collective);
    if (collective.thread >= 0) found.emplace_back(collective.thread, collective.launched);
  }
  std::ranges::sort(found);
  std::erase_if(calls, [&](const TracedCollective& call) {
    const auto own = std::ranges::lower_bound(found, std::pair(call.thread, call.launched));
    return own != found.end() && own->first == call.thread && own->second <= call.returned;
  });
  if (lost.empty() || lost.size() != calls.size()) return;
  std::ranges::stable_sort(calls, {}, &TracedCollective::launched);
  for (std::size_t i = 0; i < lost.size(); ++i) {
    lost[i]->launched = calls[i].launched;
    lost[i]->returned = calls[i].returned;
    lost[i]->thread = calls[i].thread;
    complete(lost[i]->message, calls[i].message);
  }
}

template <typename Piece>
std::vector<Piece> launched_within(const std::vector<Piece>& pieces, Nanoseconds from,
                                   Nanoseconds to) {
  const std::span<const Piece> found = of_window(pieces, from, to, &Piece::launched);
  std::vector<Piece> within(found.begin(), found.end());
  std::ranges::stable_sort(within, {}, &Piece::start);
  return within;
}

std::vector<StepWindow> profiler_steps(const Trace& trace) {
  std::vector<StepWindow> windows;
  for (const HostSpan& span : trace.host) {
    if (span.kind != Host::kStep) continue;
    // Told twice, or by two threads.
    if (!windows.empty() && span.start < windows.back().end) continue;
    windows.push_back({span.number, span.start, span.end});
  }
  return windows;
}

// Cuts at these times; time before the first and after the last belongs to a step too.
std::vector<StepWindow> cut_at(const std::vector<Nanoseconds>& times) {
  std::vector<StepWindow> windows;
  Nanoseconds start = -kFar;
  for (const Nanoseconds time : times) {
    windows.push_back({static_cast<int>(windows.size()), start, time, false});
    start = time;
  }
  windows.push_back({static_cast<int>(windows.size()), start, kFar, false});
  return windows;
}

std::vector<StepWindow> unmarked_steps(const Trace& trace) {
  std::vector<Nanoseconds> updates;
  std::vector<Nanoseconds> forwards;
  Nanoseconds update_end = -kFar;
  Nanoseconds forward_end = -kFar;
  bool arrived = false;  // since the last cut: several optimizers may update one step
  for (const HostSpan& span : trace.host) {
    if (span.kind == Host::kAccumulate || span.kind == Host::kGradient) {
      if (update_end > -kFar) updates.push_back(update_end);
      update_end = -kFar;
      arrived = true;
    }
    if (span.kind == Host::kOptimizer && arrived) update_end = std::max(update_end, span.end);
    if (span.kind == Host::kForward && span.start >= forward_end) {
      forwards.push_back(span.start);
      forward_end = span.end;
    }
  }
  if (!updates.empty() || update_end > -kFar) return cut_at(updates);
  if (!forwards.empty()) forwards.erase(forwards.begin());
  return cut_at(forwards);
}

// Returns optimizers that run the passes themselves, in a closure (Lightning's do).
std::vector<HostSpan> closures(const Trace& trace, const std::vector<Arrival>& arrivals) {
  std::vector<HostSpan> found;
  for (const HostSpan& span : trace.host) {
    if (span.kind != Host::kOptimizer) continue;
    if (of_window(arrivals, span.start, span.end, &Arrival::start).empty()) continue;
    const bool nested = !found.empty() && span.start < found.back().end;
    if (!nested) found.push_back(span);
  }
  return found;
}

// Returns true if a window ends inside one of the spans.
bool cuts_inside(const std::vector<StepWindow>& windows, const std::vector<HostSpan>& spans) {
  return std::ranges::any_of(windows, [&](const StepWindow& window) {
    const auto span = std::ranges::upper_bound(spans, window.end, {}, &HostSpan::end);
    return span != spans.end() && span->start < window.end;
  });
}

// Returns steps that end with these spans, and begin with the end of the one before.
std::vector<StepWindow> ended_by(const std::vector<HostSpan>& spans) {
  std::vector<StepWindow> steps;
  for (const HostSpan& span : spans) {
    const Nanoseconds start = steps.empty() ? span.start : steps.back().end;
    steps.push_back({static_cast<int>(steps.size()), start, span.end, false});
  }
  return steps;
}

std::vector<StepWindow> folded(const std::vector<StepWindow>& windows,
                               const TraceTimeline& timeline) {
  const auto synchronises = [&](const StepWindow& window) {
    return std::ranges::any_of(
        of_window(timeline.collectives, window.start, window.end, &TracedCollective::launched),
        &TracedCollective::of_gradients);
  };
  if (std::ranges::none_of(windows, synchronises)) return windows;
  std::vector<StepWindow> steps;
  bool open = false;
  for (const StepWindow& window : windows) {
    if (open) {
      steps.back().end = window.end;
      steps.back().number = window.number;
      steps.back().next_start = window.next_start;
      steps.back().next_end = window.next_end;
      steps.back().profiled += window.profiled;
    } else {
      steps.push_back(window);
    }
    open = !synchronises(window);
  }
  if (open) steps.pop_back();  // its exchange lies after the end of the trace
  return steps;
}

// Joins the engine's call and the node that it holds.
Arrival arrival_of(const HostSpan& call, const SpanIndex& nodes) {
  Arrival arrival{call.start, call.start, call.end, call.thread, -1};
  const auto node = std::ranges::lower_bound(
      nodes.spans(), std::pair(call.thread, call.start), {},
      [](const HostSpan& span) { return std::pair(span.thread, span.start); });
  if (node != nodes.spans().end() && node->thread == call.thread && node->start <= call.end) {
    arrival.settled = std::min(node->end, call.end);
    arrival.tensor = node->number;
  }
  return arrival;
}

// Removes arrivals without a gradient: parameters that the loss does not depend on. They are on the
// thread that called backward(), as no device owns them.
void leave_out_undefined(const Trace& trace, std::vector<Arrival>& arrivals) {
  const auto drives = [](const HostSpan& span) {
    return span.kind == Host::kStep || span.kind == Host::kOptimizer || span.kind == Host::kForward;
  };
  const auto driver = std::ranges::find_if(trace.host, drives);
  const int main = driver == trace.host.end() ? -1 : driver->thread;
  const bool engine =
      std::ranges::any_of(arrivals, [&](const Arrival& arrival) { return arrival.thread != main; });
  std::erase_if(arrivals, [&](const Arrival& arrival) {
    const bool undefined =
        arrival.tensor >= 0 && trace.tensors[static_cast<std::size_t>(arrival.tensor)].undefined;
    return undefined || (engine && arrival.thread == main);
  });
}

}  // namespace

ObservedExchange exchange_of(const TracedCollective& collective, Nanoseconds begin) {
  const TracedMessage& message = collective.message;
  ObservedExchange exchange;
  exchange.kind = message.kind.empty() ? "unknown" : message.kind;
  exchange.group = message.group;
  exchange.ranks = message.ranks;
  exchange.elements = message.elements;
  exchange.dtype = message.dtype.value_or(DType::kFp32);
  exchange.complete = exchange.sent = seconds(collective.start - begin);
  exchange.duration = exchange.time = seconds(collective.end - collective.start);
  return exchange;
}

SpanIndex::SpanIndex(std::vector<HostSpan> spans) : spans_(std::move(spans)) {
  std::ranges::stable_sort(spans_, [](const HostSpan& a, const HostSpan& b) {
    return std::pair(a.thread, a.start) < std::pair(b.thread, b.start);
  });
}

std::vector<const HostSpan*> SpanIndex::all_around(int thread, Nanoseconds time) const {
  constexpr int kNested = 8;
  const auto behind =
      std::ranges::upper_bound(spans_, std::pair(thread, time), {},
                               [](const HostSpan& s) { return std::pair(s.thread, s.start); });
  std::vector<const HostSpan*> around;
  auto span = behind;
  for (int i = 0; i < kNested && span != spans_.begin(); ++i) {
    --span;
    if (span->thread != thread) break;
    if (span->end >= time) around.push_back(&*span);
  }
  return around;
}

const HostSpan* SpanIndex::around(int thread, Nanoseconds time) const {
  const std::vector<const HostSpan*> spans = all_around(thread, time);
  return spans.empty() ? nullptr : spans.front();
}

TraceTimeline::TraceTimeline(const Trace& trace)
    : copies_in(of_kind(trace, {Host::kCopyIn, Host::kCopyInHook})),
      copies_out(of_kind(trace, {Host::kCopyOut})),
      engine(of_kind(trace, {Host::kEngine, Host::kGradient})),
      communication(of_kind(trace, {Host::kCommunication})) {
  std::map<int, std::size_t> kernels;
  for (const DeviceEvent& event : trace.device) {
    if (event.work == TracedWork::kKernel) ++kernels[event.device];
  }
  device = commonest(kernels);
  devices = static_cast<int>(kernels.size());
  std::map<std::int64_t, std::size_t> streams;
  for (const DeviceEvent& event : trace.device) {
    if (event.work == TracedWork::kKernel && event.device == device && event.message < 0) {
      ++streams[event.stream];
    }
  }
  stream = commonest(streams);
  const bool named = std::ranges::any_of(
      trace.device, [](const DeviceEvent& event) { return event.message >= 0; });
  const Before before(trace);
  for (const DeviceEvent& event : trace.device) {
    if (event.device != device) continue;
    const KernelLaunch* launch = launch_of(trace, event);
    const Item item = item_of(event, launch);
    const bool beside = !named && event.stream != stream && event.work == TracedWork::kKernel &&
                        communication.around(item.thread, item.launched) != nullptr;
    if (event.message >= 0 && launch == nullptr && before.holds(event)) {
      ++collectives_before;
    } else if (event.message >= 0 || beside) {
      const TracedMessage* own =
          event.message < 0 ? nullptr : &trace.messages[static_cast<std::size_t>(event.message)];
      collectives.push_back({item, message_at(trace, communication, item, own)});
    } else if (event.stream == stream && launch != nullptr) {
      compute.push_back(item);
      if (event.work == TracedWork::kKernel) ++kernels_launched;
    } else if (event.stream == stream && event.work == TracedWork::kKernel) {
      ++kernels_alone;
    }
  }
  collectives_on_device = !collectives.empty();
  if (collectives_on_device) {
    find_lost_calls(collectives, collectives_of_calls(trace, communication));
  } else {
    collectives = collectives_of_calls(trace, communication);
  }
  std::ranges::stable_sort(compute, {}, &Item::launched);
  std::ranges::stable_sort(collectives, {}, &TracedCollective::launched);
  find_busy(trace);
}

void TraceTimeline::find_busy(const Trace& trace) {
  std::vector<std::pair<Nanoseconds, Nanoseconds>> all;
  for (const DeviceEvent& event : trace.device) {
    if (event.device == device) all.emplace_back(event.start, event.end);
  }
  // Collectives of the host (gloo's) are not among the device's events.
  for (const TracedCollective& collective : collectives) {
    if (!collectives_on_device) all.emplace_back(collective.start, collective.end);
  }
  std::ranges::sort(all);
  for (const auto& [start, end] : all) {
    if (busy_.empty() || start > busy_.back().second) busy_.emplace_back(start, end);
    busy_.back().second = std::max(busy_.back().second, end);
  }
}

Nanoseconds TraceTimeline::idle(Nanoseconds from, Nanoseconds to) const {
  Nanoseconds idle = std::max<Nanoseconds>(to - from, 0);
  const auto end = [](const auto& busy) { return busy.second; };
  for (auto busy = std::ranges::upper_bound(busy_, from, {}, end);
       busy != busy_.end() && busy->first < to; ++busy) {
    idle -= std::min(busy->second, to) - std::max(busy->first, from);
  }
  return idle;
}

std::vector<Item> TraceTimeline::launched_items(Nanoseconds from, Nanoseconds to) const {
  return launched_within(compute, from, to);
}

std::vector<TracedCollective> TraceTimeline::launched_collectives(Nanoseconds from,
                                                                  Nanoseconds to) const {
  return launched_within(collectives, from, to);
}

std::string list_numbers(const std::vector<int>& numbers) {
  std::string text;
  for (const int number : numbers) text += (text.empty() ? "" : ", ") + std::to_string(number);
  return text;
}

std::vector<Arrival> arrivals_of(const Trace& trace) {
  std::vector<HostSpan> nodes;
  std::vector<HostSpan> calls;
  for (const HostSpan& span : trace.host) {
    if (span.kind == Host::kAccumulate) nodes.push_back(span);
    if (span.kind == Host::kGradient) calls.push_back(span);
  }
  std::vector<Arrival> arrivals;
  if (calls.empty()) {
    for (const HostSpan& node : nodes) {
      arrivals.push_back({node.start, node.end, node.end, node.thread, node.number});
    }
  }
  const SpanIndex index(std::move(nodes));
  for (const HostSpan& call : calls) arrivals.push_back(arrival_of(call, index));
  leave_out_undefined(trace, arrivals);
  return arrivals;
}

void mark_gradient_exchanges(TraceTimeline& timeline, const std::vector<Arrival>& arrivals) {
  if (arrivals.empty()) return;
  const auto inside = [&](const TracedCollective& collective) {
    const auto behind =
        std::ranges::upper_bound(arrivals, collective.launched, {}, &Arrival::start);
    // One arrival a thread may be open, and threads are few.
    constexpr std::ptrdiff_t kOpen = 16;
    const auto from = behind - std::min(kOpen, behind - arrivals.begin());
    return std::any_of(from, behind, [&](const Arrival& arrival) {
      return arrival.thread == collective.thread && collective.launched <= arrival.end;
    });
  };
  bool hooked = false;
  for (TracedCollective& collective : timeline.collectives) {
    collective.of_gradients = collective.message.kind == "all_reduce" && inside(collective);
    hooked = hooked || collective.of_gradients;
  }
  if (hooked) return;
  for (TracedCollective& collective : timeline.collectives) {
    collective.of_gradients =
        collective.message.kind == "all_reduce" && collective.launched >= arrivals.front().start;
  }
}

std::vector<StepWindow> windows_of(const Trace& trace, const TraceTimeline& timeline,
                                   const std::vector<Arrival>& arrivals,
                                   std::vector<std::string>& notes) {
  std::vector<StepWindow> windows = profiler_steps(trace);
  const std::vector<HostSpan> closed = closures(trace, arrivals);
  if (cuts_inside(windows, closed)) {
    notes.push_back(
        "the profiler's steps begin inside the optimizer's, which run the passes (Lightning): "
        "a step is assumed to reach from one optimizer's end to the next");
    windows.clear();
  }
  if (windows.empty()) windows = closed.empty() ? unmarked_steps(trace) : ended_by(closed);
  for (std::size_t i = 0; i + 1 < windows.size(); ++i) {
    if (windows[i + 1].number != windows[i].number + 1) continue;
    windows[i].next_start = windows[i + 1].start;
    windows[i].next_end = windows[i + 1].end;
  }
  std::vector<int> idle;
  std::erase_if(windows, [&](const StepWindow& window) {
    const bool trains = !of_window(arrivals, window.start, window.end, &Arrival::start).empty();
    if (!trains) idle.push_back(window.number);
    return !trains;
  });
  if (!idle.empty() && !windows.empty()) {
    notes.push_back("profiled steps without a backward pass are left out: " + list_numbers(idle));
  }
  return folded(windows, timeline);
}

}  // namespace syncline::job::kineto
