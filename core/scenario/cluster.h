// The machines: ranks in nodes, nodes under switches, each level a tier with its own latency and
// bandwidth. One GPU is one rank; rank r sits on node r / gpus_per_node.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/units.h"

namespace syncline {

// Levels of a network, at most: inside the node, between nodes, and a few above.
inline constexpr int kMostTiers = 6;

// One level of the network. A *unit* of the innermost tier is a rank, of the next one a node, and
// so on; each unit has one full-duplex port into its tier's switch. A message costs
// latency + bytes / bandwidth on the outermost tier that it crosses.
struct Tier {
  std::string name;
  int span = 1;                  // ranks below one switch of this tier
  Seconds latency = 0;           // a message's start-up time
  BytesPerSecond bandwidth = 0;  // of one unit's port, each direction
  // What a single flow (one communicator's connection) can reach, e.g. one TCP stream on a fast
  // link; more streams fill the port.
  BytesPerSecond flow_cap = std::numeric_limits<double>::infinity();
  // The switch carries (sum of its ports) / oversubscription.
  double oversubscription = 1;
};

// The accelerator, as far as it prices encode, decode and averaging, and work given in FLOPs.
struct Device {
  double flops = 0;           // reached rate, floating-point operations per second; 0: unknown
  double half_flops = 0;      // of matrix products in fp16 and bf16; 0: like the others
  BytesPerSecond memory = 0;  // reached rate; 0: such work is free
  Seconds launch = 0;         // one kernel launch
  Seconds kernel_gap = 0;     // the least time between two kernels on a stream
  Seconds host_sync = 0;      // the host waits for a stream
};

// How much a rank's computation varies from step to step. `relative` is the spread as a share of
// the mean: factor = 1 + relative * z, z standard normal or exponential with mean one.
struct Jitter {
  enum class Kind { kNone, kNormal, kExponential };
  Kind kind = Kind::kNone;
  double relative = 0;
};

struct Cluster {
  std::string name;
  std::string source;
  int nodes = 1;
  int gpus_per_node = 1;
  std::vector<Tier> tiers;          // innermost first; the last one spans all ranks
  Seconds collective_overhead = 0;  // fixed cost of each collective: launch and rendezvous
  Device device;
  Jitter jitter;

  int ranks() const { return nodes * gpus_per_node; }
};

}  // namespace syncline
