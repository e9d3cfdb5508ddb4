// Duration of a collective's rounds across tiers of different speed. A rank's next round begins
// when all that it sent in the last one has left it and all that it awaited has arrived. A receiver
// takes messages in the order of its rounds, the next as soon as the last is off the wire. A
// message holds the wire for the fastest tier's latency and its bytes; the extra latency of a
// slower tier delays only the receiver.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "core/collective/footprint.h"
#include "core/collective/schedule.h"

namespace syncline::collective {

// The load of all rounds of one stage on the links.
struct StageCost {
  double seconds_per_byte = 0;  // of payload; on the slowest link or flow
  // Seconds per payload byte for which each used link works, by kind of link (Footprint), in order
  // of kind.
  std::vector<std::pair<int, double>> links;
  // Rate of one message at full speed, in bytes per second; the minimum of several.
  double flow_rate = 0;
};

// The end of a stage, and the wire time of its longest chain of messages; the rest is latency. The
// time is convex in the payload, `transfer` its slope times the payload.
struct StageEnd {
  Seconds time = 0;
  Seconds transfer = 0;
};

// Returns the ends of all stages for a payload of `bytes`, if tiers mix. A message shares every
// link on its way with the others of its stage, as if all of them were under way at once: the
// expected time. With `own_ports` it shares only its two ranks' ports, with their messages of the
// same round: ranks may run ahead of each other, so this is a lower bound.
std::vector<StageEnd> stage_ends(const Footprint& footprint, const Stages& stages,
                                 const std::vector<StageCost>& costs, double bytes,
                                 bool own_ports = false);

// Returns the same for rounds in steady state. It suits networks with few equal ranks and very many
// rounds. A round takes the longest time that a message holds its wire, or the mean time until
// messages arrive (as in a ring), whichever is longer.
std::vector<StageEnd> steady_ends(const Footprint& footprint, const Stages& stages,
                                  const std::vector<StageCost>& costs, double bytes);

// End of the last stage, for many payloads. Between two powers of two the time has a few straight
// pieces. They are found from both ends once a payload between them is asked about: the time is
// convex, so two tangents that meet on it leave no piece between them. Equal to a walk up to
// rounding, for any earlier calls.
class LastEnds {
 public:
  // Returns the end of the last stage for a payload of `bytes`.
  using Walk = std::function<StageEnd(double bytes)>;

  // Returns the end for a payload of `bytes`. Requires the same `walk` at each call.
  StageEnd at(double bytes, const Walk& walk);

 private:
  // Latency and seconds per byte of each piece, by the power of two above; empty: always walk.
  std::map<int, std::vector<std::pair<Seconds, double>>> cells_;
};

// Returns each stage's time beyond its transfer, which is its cost's seconds per byte * `bytes`.
// Stages end at `ends`. A value is negative if ranks with faster messages are a stage ahead, as
// `ends` follow the longest path and not the busiest links.
std::vector<Seconds> stage_latencies(const std::vector<StageEnd>& ends,
                                     const std::vector<StageCost>& costs, double bytes);

// Returns how often this process has walked the stages of a collective, message by message. For
// tests and benchmarks: a search must not do so for every bucket size.
std::size_t walks();

}  // namespace syncline::collective
