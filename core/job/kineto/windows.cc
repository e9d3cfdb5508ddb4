#include "core/job/kineto/windows.h"

#include <algorithm>

namespace syncline::job::kineto {
namespace {

template <typename Piece>
bool any_within(const std::vector<Piece>& by_start, Nanoseconds Piece::*time,
                const StepWindow& window) {
  const auto first = std::ranges::lower_bound(by_start, window.start, {}, time);
  return first != by_start.end() && (*first).*time < window.end;
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

// Cut at these times; what is before the first and behind the last belongs to a step too.
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

bool synchronises(const Timeline& timeline, const StepWindow& window) {
  const auto first =
      std::ranges::lower_bound(timeline.collectives, window.start, {}, &Collective::launched);
  const auto last =
      std::ranges::lower_bound(timeline.collectives, window.end, {}, &Collective::launched);
  return std::any_of(first, last, [](const Collective& c) { return c.of_gradients; });
}

std::vector<StepWindow> folded(const std::vector<StepWindow>& windows, const Timeline& timeline) {
  std::vector<bool> synchronous;
  for (const StepWindow& window : windows) {
    synchronous.push_back(synchronises(timeline, window));
  }
  if (std::ranges::count(synchronous, true) == 0) return windows;
  std::vector<StepWindow> steps;
  bool open = false;
  for (std::size_t i = 0; i < windows.size(); ++i) {
    if (open) {
      steps.back().end = windows[i].end;
      steps.back().number = windows[i].number;
      steps.back().profiled += windows[i].profiled;
    } else {
      steps.push_back(windows[i]);
    }
    open = !synchronous[i];
  }
  if (open) steps.pop_back();  // its exchange lies behind the end of the trace
  return steps;
}

// The engine's call, and the node that it holds.
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

// Parameters that the loss does not depend on arrive without a gradient, and on the thread that
// called backward(), as no device owns them.
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

std::string listed(const std::vector<int>& numbers) {
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

void mark_gradient_exchanges(Timeline& timeline, const std::vector<Arrival>& arrivals) {
  if (arrivals.empty()) return;
  const auto inside = [&](const Collective& collective) {
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
  for (Collective& collective : timeline.collectives) {
    collective.of_gradients = collective.message.kind == "all_reduce" && inside(collective);
    hooked = hooked || collective.of_gradients;
  }
  if (hooked) return;
  for (Collective& collective : timeline.collectives) {
    collective.of_gradients =
        collective.message.kind == "all_reduce" && collective.launched >= arrivals.front().start;
  }
}

std::vector<StepWindow> windows_of(const Trace& trace, const Timeline& timeline,
                                   const std::vector<Arrival>& arrivals,
                                   std::vector<std::string>& notes) {
  std::vector<StepWindow> windows = profiler_steps(trace);
  if (windows.empty()) windows = unmarked_steps(trace);
  std::vector<int> idle;
  std::erase_if(windows, [&](const StepWindow& window) {
    const bool trains = any_within(arrivals, &Arrival::start, window);
    if (!trains) idle.push_back(window.number);
    return !trains;
  });
  if (!idle.empty() && !windows.empty()) {
    notes.push_back("profiled steps without a backward pass are left out: " + listed(idle));
  }
  return folded(windows, timeline);
}

}  // namespace syncline::job::kineto
