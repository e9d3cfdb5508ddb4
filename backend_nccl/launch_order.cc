// The order is the plan's list. It is the same on every rank, as NCCL requires if communicators
// share a GPU. An operation waits only for earlier ones in the list, so every prefix of the list
// can finish without the rest. A delayed host (full queue, connection being made) thus never
// deadlocks others.
//
// A CUDA stream for each of the plan's streams keeps the order within a stream. All other
// dependencies are events: the smallest set that covers the plan's `after` and `after_previous`.
//
// Knows neither CUDA nor NCCL, so that tests need neither.
#include "backend_nccl/launch_order.h"

#include <algorithm>

#include "core/base/index.h"

namespace syncline::nccl_backend {
namespace {

// The last operation of another stream that a stream has waited for, by period; -1: none.
struct Waited {
  plan::OpId previous = -1;
  plan::OpId current = -1;
};

// Computes the events to wait for. Per stream only the last operation counts, and only if the
// waiting stream has not yet waited for it or a later one. Waits of the previous period do not
// count, because the first period has none.
class Waits {
 public:
  explicit Waits(const plan::Plan& plan) : plan_(plan), streams_(index(plan.streams)) {
    waited_.resize(streams_ * streams_);
  }

  std::vector<EventWait> of(const plan::Op& op) {
    std::vector<Waited> wanted(streams_);
    for (const plan::OpId before : op.after) {
      plan::OpId& last = wanted[stream_of(before)].current;
      last = std::max(last, before);
    }
    for (const plan::OpId before : op.after_previous) {
      plan::OpId& last = wanted[stream_of(before)].previous;
      last = std::max(last, before);
    }
    std::vector<EventWait> waits;
    for (std::size_t from = 0; from < streams_; ++from) {
      if (from == index(op.stream)) continue;
      Waited& waited = waited_[index(op.stream) * streams_ + from];
      if (wanted[from].current > waited.current) {
        waits.push_back({wanted[from].current, false});
        waited.current = wanted[from].current;
      }
      // A wait for this period's operation covers all of the previous period's.
      if (waited.current < 0 && wanted[from].previous > waited.previous) {
        waits.push_back({wanted[from].previous, true});
        waited.previous = wanted[from].previous;
      }
    }
    return waits;
  }

 private:
  std::size_t stream_of(plan::OpId op) const { return index(plan_.ops[index(op)].stream); }

  const plan::Plan& plan_;
  std::size_t streams_;
  std::vector<Waited> waited_;  // per waiting stream and awaited stream
};

int communicator_of(const plan::Op& op, std::vector<CommunicatorKey>& keys) {
  const auto* collective = std::get_if<collective::Collective>(&op.work);
  if (collective == nullptr) return -1;
  const CommunicatorKey key{op.stream, collective->groups, nccl_algorithm(*collective)};
  const auto found = std::find(keys.begin(), keys.end(), key);
  if (found != keys.end()) return static_cast<int>(found - keys.begin());
  keys.push_back(key);
  return static_cast<int>(keys.size()) - 1;
}

}  // namespace

std::string nccl_algorithm(const collective::Collective& collective) {
  if (collective.kind != collective::CollectiveKind::kAllReduce || collective.nccl) return "";
  if (collective.algorithm == nullptr) return "";
  if (collective.algorithm->name == "ring") return "ring";
  if (collective.algorithm->name == "double_binary_tree") return "tree";
  return "";
}

LaunchOrder launch_order(const plan::Plan& plan) {
  LaunchOrder order;
  Waits waits(plan);
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const plan::Op& op = plan.ops[i];
    OrderedLaunch launch;
    launch.op = static_cast<plan::OpId>(i);
    launch.stream = op.stream;
    launch.waits = waits.of(op);
    launch.communicator = communicator_of(op, order.communicators);
    order.launches.push_back(std::move(launch));
  }
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    for (const EventWait& wait : order.launches[i].waits) {
      order.launches[index(wait.op)].awaited = true;
    }
  }
  return order;
}

}  // namespace syncline::nccl_backend
