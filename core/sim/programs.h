// The messages of a plan's collectives: sender, receiver, round of each, bytes, and links.
#pragma once

#include <cstddef>
#include <vector>

#include "core/base/index.h"
#include "core/collective/network.h"
#include "core/plan.h"
#include "core/sim/flows.h"

namespace syncline::sim {

// A collective's messages, and for each kind of rank its rounds. Rounds are numbered rank by rank:
// rank r's are [first_round[r], first_round[r + 1]).
struct Program {
  struct Message {
    int from = 0;
    int to = 0;
    int from_round = 0;
    int to_round = 0;
    int route = 0;
    double bytes = 0;
    Seconds extra_latency = 0;  // beyond the common latency; delays the receiver
  };
  int ranks() const { return static_cast<int>(first_round.size()) - 1; }
  std::vector<Message> messages;
  std::vector<int> first_round;
  std::vector<int> events;      // by round: messages that leave or reach the rank in it
  std::vector<int> receives;    // by round: messages that reach it
  std::vector<int> send_begin;  // by round: range in `sends`
  std::vector<int> sends;       // message ids
  Seconds took = -1;            // duration alone on the network; -1: unknown so far
  int alike = 0;                // rounds of each rank if all have the same messages; otherwise 0
};

// The messages of a plan's collectives, over one network for all.
class Programs {
 public:
  // Lists every message. With `fold`, ranks with equal messages are one, if no two collectives
  // overlap each by itself; links that then carry one message at a time are `per_flow`.
  Programs(const plan::Plan& plan, const collective::Network& network, bool fold);

  const FluidPlan& fluid() const { return fluid_; }
  Program& of(plan::OpId op) { return all_[index(of_op_[index(op)])]; }

 private:
  void add(const std::vector<collective::Collective>& collectives, bool fold);
  void mark_unshared(std::size_t first_link);

  const collective::Network& network_;
  FluidPlan fluid_;
  std::vector<Program> all_;
  std::vector<int> of_op_;  // -1 for anything but a collective
};

}  // namespace syncline::sim
