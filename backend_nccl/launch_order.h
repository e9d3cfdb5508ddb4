// In which order one host thread hands a plan to the GPU, and what each launch waits for there.
#pragma once

#include <string>
#include <vector>

#include "core/plan.h"

namespace syncline::nccl_backend {

// The end of an operation on another stream, of the same period or the one before.
struct EventWait {
  plan::OpId op = 0;
  bool previous = false;
  bool operator==(const EventWait&) const = default;
};

struct OrderedLaunch {
  plan::OpId op = 0;
  plan::StreamId stream = plan::kComputeStream;
  std::vector<EventWait> waits;  // those of the period before do not count in the first one
  bool awaited = false;          // some launch waits for its end
  int communicator = -1;         // of LaunchOrder::communicators, for a collective
};

// What NCCL_ALGO calls the algorithm of an all-reduce; empty where NCCL has none like it, where the
// plan leaves the choice to NCCL, and for every other kind, which NCCL has one algorithm for on
// most machines.
std::string nccl_algorithm(const collective::Collective& collective);

// A communicator of its own for every communicating stream and every way of grouping ranks on it,
// and for every algorithm, since NCCL reads its choice when a communicator is made.
struct CommunicatorKey {
  plan::StreamId stream = 1;
  collective::Groups groups;
  std::string algorithm;  // nccl_algorithm()
  bool operator==(const CommunicatorKey&) const = default;
};

struct LaunchOrder {
  std::vector<OrderedLaunch> launches;
  // In the order of their first use: all ranks make them in this order.
  std::vector<CommunicatorKey> communicators;
};

LaunchOrder launch_order(const plan::Plan& plan);

}  // namespace syncline::nccl_backend
