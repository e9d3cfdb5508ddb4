// How long the rounds of a collective take where tiers of different speed mix. A rank's next round
// begins when all that it sent in the last one has left it and all that it awaited has arrived; a
// receiver takes messages in the order of its rounds, the next as soon as the last is off the wire.
// A message holds the wire for the fastest tier's latency and its bytes; what a slower tier adds to
// the latency delays the receiver alone.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "core/collective/footprint.h"
#include "core/collective/schedule.h"

namespace syncline::collective {

// What all rounds of one stage put on the links.
struct StageCost {
  double seconds_per_byte = 0;  // of payload; the slowest link's, or flow's
  // Seconds per payload byte for which each link works that carries something, by kind of link
  // (Footprint), in their order.
  std::vector<std::pair<int, double>> links;
  // What one message of it has at full speed, in bytes per second; the least of several.
  double flow_rate = 0;
};

// When a stage is over, and how much of that the longest chain of messages was on wires for bytes;
// the rest is latency. The time is convex in the payload, and this is its slope times the payload.
struct StageEnd {
  Seconds time = 0;
  Seconds transfer = 0;
};

// Of all stages, for a payload of `bytes`, where tiers mix. A message shares every link on its way
// with the others of its stage, as if all of them were under way at once: what is to be expected.
// With `own_ports` it shares no more than the ports of its own two ranks, with what those send and
// await in the same round: ranks may run ahead of each other, but nothing is faster than this.
std::vector<StageEnd> stage_ends(const Footprint& footprint, const Stages& stages,
                                 const std::vector<StageCost>& costs, double bytes,
                                 bool own_ports = false);

// The same once the rounds of each stage are in their stride, for networks on which hardly two
// ranks are alike and rounds are very many: a round takes as long as the slowest message holds its
// wire, or as long as messages take on average, which is what a ring's go round in.
std::vector<StageEnd> steady_ends(const Footprint& footprint, const Stages& stages,
                                  const std::vector<StageCost>& costs, double bytes);

// When the last stage is over, for many payloads. Between two powers of two the time is a few
// straight pieces, which are found from both ends on where the first payload between them is asked
// about: it is convex, so that two tangents that meet on it leave nothing between them. Equal to
// what is walked but for rounding, whatever was asked before.
class LastEnds {
 public:
  // Says when the last stage is over for a payload of so many bytes.
  using Walk = std::function<StageEnd(double bytes)>;

  // `walk` is the same at each call.
  StageEnd at(double bytes, const Walk& walk);

 private:
  // By the power of two above: latency and seconds per byte of each piece; none: it has none.
  std::map<int, std::vector<std::pair<Seconds, double>>> cells_;
};

// Of stages that are over at `ends`, for a payload of `bytes`: the time that each adds beyond its
// transfer at nominal speed (its cost's seconds per byte). Negative where ranks whose own messages
// are faster are a stage ahead: the sum is the longest path's, not the busiest links'.
std::vector<Seconds> stage_latencies(const std::vector<StageEnd>& ends,
                                     const std::vector<StageCost>& costs, double bytes);

// How much work costs have been so far, for tests and benchmarks: what a search may not do for
// every size of bucket that it looks at.

// Returns how often this process has gone through the stages of a collective, message by message.
std::size_t walks();

}  // namespace syncline::collective
