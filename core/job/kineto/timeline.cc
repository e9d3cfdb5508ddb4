#include "core/job/kineto/timeline.h"

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

// A correlation may stand there twice (counters begin anew): the latest call before the work is
// its own, or where clocks disagree the first.
const Launch* launch_of(const Trace& trace, const DeviceEvent& event) {
  if (event.correlation < 0) return nullptr;
  const auto behind = std::ranges::upper_bound(
      trace.launches, std::pair(event.correlation, event.start), {},
      [](const Launch& launch) { return std::pair(launch.correlation, launch.start); });
  const auto is_its = [&](auto launch) {
    return launch != trace.launches.end() && launch->correlation == event.correlation;
  };
  if (behind != trace.launches.begin() && is_its(behind - 1)) return &*(behind - 1);
  return is_its(behind) ? &*behind : nullptr;
}

template <typename Key>
Key commonest(const std::map<Key, std::size_t>& counts) {
  const auto most = std::ranges::max_element(
      counts, [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == counts.end() ? Key{} : most->first;
}

Item item_of(const DeviceEvent& event, const Launch* launch) {
  Item item{event.start, event.end, event.start, event.start, -1, event.bytes, event.work};
  if (launch != nullptr) {
    item.launched = launch->start;
    item.returned = launch->end;
    item.thread = launch->thread;
    if (event.work == Work::kCopy && item.bytes == 0) item.bytes = launch->bytes;
  }
  return item;
}

// What one source does not tell, the other does.
void complete(Message& message, const Message& other) {
  if (!message.told && !other.kind.empty()) message.kind = other.kind;
  message.told = message.told || !other.kind.empty();
  if (message.group.empty()) message.group = other.group;
  if (message.backend.empty()) message.backend = other.backend;
  if (message.ranks == 0) message.ranks = other.ranks;
  if (message.elements == 0) message.elements = other.elements;
  if (!message.dtype) message.dtype = other.dtype;
}

Message message_at(const Trace& trace, const SpanIndex& calls, const Item& item,
                   const Message* own) {
  Message message = own != nullptr ? *own : Message{};
  for (const HostSpan* call : calls.all_around(item.thread, item.launched)) {
    complete(message, trace.messages[static_cast<std::size_t>(call->number)]);
  }
  return message;
}

// Collectives that left no kernel: gloo's last from the call to the completion; NCCL's, of which
// the trace holds the calls alone, have no time. Calls nest (c10d::, record_param_comms, nccl:):
// the outermost stands for all.
std::vector<Collective> collectives_of_calls(const Trace& trace, const SpanIndex& calls) {
  std::vector<Collective> found;
  bool backends = false;
  for (auto call = calls.spans().begin(); call != calls.spans().end();) {
    Collective collective;
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
  // Where a backend names its own, c10d's calls on other threads are the same once more.
  std::erase_if(found, [&](const Collective& c) { return backends && c.message.backend.empty(); });
  return found;
}

// Kernels whose launches the trace lost (cooperative ones on AMD, say) belong to the calls that no
// other kernel belongs to, in order, where there are as many.
void find_lost_calls(std::vector<Collective>& collectives, std::vector<Collective> calls) {
  std::vector<Collective*> lost;
  std::vector<std::pair<int, Nanoseconds>> found;
  for (Collective& collective : collectives) {
    if (collective.thread < 0) lost.push_back(&collective);
    if (collective.thread >= 0) found.emplace_back(collective.thread, collective.launched);
  }
  std::ranges::sort(found);
  std::erase_if(calls, [&](const Collective& call) {
    const auto own = std::ranges::lower_bound(found, std::pair(call.thread, call.launched));
    return own != found.end() && own->first == call.thread && own->second <= call.returned;
  });
  if (lost.empty() || lost.size() != calls.size()) return;
  std::ranges::stable_sort(calls, {}, &Collective::launched);
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
  const auto first = std::ranges::lower_bound(pieces, from, {}, &Piece::launched);
  const auto last = std::ranges::lower_bound(first, pieces.end(), to, {}, &Piece::launched);
  std::vector<Piece> within(first, last);
  std::ranges::stable_sort(within, {}, &Piece::start);
  return within;
}

}  // namespace

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

Timeline::Timeline(const Trace& trace)
    : copies_in(of_kind(trace, {Host::kCopyIn, Host::kCopyInHook})),
      copies_out(of_kind(trace, {Host::kCopyOut})),
      engine(of_kind(trace, {Host::kEngine, Host::kGradient})),
      communication(of_kind(trace, {Host::kCommunication})) {
  std::map<int, std::size_t> kernels;
  for (const DeviceEvent& event : trace.device) {
    if (event.work == Work::kKernel) ++kernels[event.device];
  }
  device = commonest(kernels);
  devices = static_cast<int>(kernels.size());
  std::map<std::int64_t, std::size_t> streams;
  for (const DeviceEvent& event : trace.device) {
    if (event.work == Work::kKernel && event.device == device && event.message < 0) {
      ++streams[event.stream];
    }
  }
  stream = commonest(streams);
  const bool named = std::ranges::any_of(
      trace.device, [](const DeviceEvent& event) { return event.message >= 0; });
  for (const DeviceEvent& event : trace.device) {
    if (event.device != device) continue;
    const Launch* launch = launch_of(trace, event);
    const Item item = item_of(event, launch);
    const bool beside = !named && event.stream != stream && event.work == Work::kKernel &&
                        communication.around(item.thread, item.launched) != nullptr;
    if (event.message >= 0 || beside) {
      const Message* own =
          event.message < 0 ? nullptr : &trace.messages[static_cast<std::size_t>(event.message)];
      collectives.push_back({item, message_at(trace, communication, item, own)});
    } else if (event.stream == stream && launch != nullptr) {
      compute.push_back(item);
      if (event.work == Work::kKernel) ++kernels_launched;
    } else if (event.stream == stream && event.work == Work::kKernel) {
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
  std::ranges::stable_sort(collectives, {}, &Collective::launched);
  find_busy(trace);
}

void Timeline::find_busy(const Trace& trace) {
  std::vector<Busy> all;
  for (const DeviceEvent& event : trace.device) {
    if (event.device == device) all.push_back({event.start, event.end});
  }
  // Those of the host, gloo's, are not among the device's.
  for (const Collective& collective : collectives) {
    if (!collectives_on_device) all.push_back({collective.start, collective.end});
  }
  std::ranges::sort(all, {}, &Busy::start);
  for (const Busy& one : all) {
    if (busy_.empty() || one.start > busy_.back().end) {
      busy_.push_back(one);
    } else {
      busy_.back().end = std::max(busy_.back().end, one.end);
    }
  }
}

Nanoseconds Timeline::idle(Nanoseconds from, Nanoseconds to) const {
  Nanoseconds idle = std::max<Nanoseconds>(to - from, 0);
  for (auto busy = std::ranges::upper_bound(busy_, from, {}, &Busy::end);
       busy != busy_.end() && busy->start < to; ++busy) {
    idle -= std::min(busy->end, to) - std::max(busy->start, from);
  }
  return idle;
}

std::vector<Item> Timeline::computed(Nanoseconds from, Nanoseconds to) const {
  return launched_within(compute, from, to);
}

std::vector<Collective> Timeline::exchanged(Nanoseconds from, Nanoseconds to) const {
  return launched_within(collectives, from, to);
}

}  // namespace syncline::job::kineto
