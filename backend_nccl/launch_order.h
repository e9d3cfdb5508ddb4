// The order that one host thread launches a plan in, and the events that each launch waits for.
#pragma once

#include <string>
#include <vector>

#include "core/plan.h"

namespace syncline::nccl_backend {

// The end of an operation on another stream, in the same period or the previous one.
struct EventWait {
  plan::OpId op = 0;
  bool previous = false;
  bool operator==(const EventWait&) const = default;
};

struct OrderedLaunch {
  plan::OpId op = 0;
  plan::StreamId stream = plan::kComputeStream;
  std::vector<EventWait> waits;  // those of the previous period do not count in the first one
  bool awaited = false;          // some launch waits for its end
  int communicator = -1;         // index in LaunchOrder::communicators; -1: no collective
};

// Returns the algorithm of an all-reduce in NCCL_ALGO's terms. Empty if NCCL has none like it or if
// the plan leaves the choice to NCCL. Empty for every other kind: NCCL has one algorithm for those
// on most machines.
std::string nccl_algorithm(const collective::Collective& collective);

// Names a communicator: one per communicating stream, grouping of ranks and algorithm, since NCCL
// reads its choice of algorithm when it makes a communicator.
struct CommunicatorKey {
  plan::StreamId stream = 1;
  collective::Groups groups;
  std::string algorithm;  // nccl_algorithm()
  bool operator==(const CommunicatorKey&) const = default;
};

struct LaunchOrder {
  std::vector<OrderedLaunch> launches;
  // In the order of first use: all ranks make them in this order.
  std::vector<CommunicatorKey> communicators;
};

LaunchOrder launch_order(const plan::Plan& plan);

}  // namespace syncline::nccl_backend
