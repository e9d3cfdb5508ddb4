// The machines: ranks in nodes, nodes under switches, each level a tier with its own latency and
// bandwidth. One GPU is one rank; rank r sits on node r / gpus_per_node.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/units.h"
#include "core/job/dtype.h"

namespace syncline::collective {
struct Collective;
}
namespace syncline::fabric {
struct Topology;
}

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
  BytesPerSecond bandwidth = 0;  // of one unit's port, each direction, all its NICs together
  int nics = 1;
  double efficiency = 1;  // what `bandwidth` is of the rated one, which libraries go by
  bool measured = false;  // `bandwidth` is what collectives reach here, not what a data sheet says
  // What a single flow (one communicator's connection) can reach, e.g. one TCP stream on a fast
  // link; more streams fill the port.
  BytesPerSecond flow_cap = std::numeric_limits<double>::infinity();
  // The switch carries (sum of its ports) / oversubscription.
  double oversubscription = 1;
  double sends = 1;  // a port's rate of sending over that of receiving, `bandwidth`

  BytesPerSecond upload() const { return bandwidth * sends; }
  BytesPerSecond narrower() const { return bandwidth * std::min(1.0, sends); }  // both directions
};

// What computation and a collective take from each other while they run beside each other: NCCL's
// kernels take multiprocessors and memory, Gloo's threads and sockets take processors.
struct Overlap {
  // Share by which computation takes longer. JSON: overlap_slowdown; where it is not given, what
  // is assumed of the cluster (core/job/overlap.h).
  double slowdown = 0;
  // Share by which the collective takes longer. JSON: overlap_collective_slowdown; where it is not
  // given, as much as computation.
  double collective_slowdown = 0;
  // What each collective takes longer that begins beside computation, whatever its size: its
  // threads wait for a processor that computes. JSON: overlap_delay_us.
  Seconds delay = 0;
  bool given = false;
  // How well the three are known where they are given: the standard deviation of log(true / said),
  // of all of them together. JSON: overlap_spread.
  double spread = kMeasuredSpread;

  static constexpr double kMeasuredSpread = 0.2;  // seen by `record`, which does not say

  bool any() const { return slowdown > 0 || collective_slowdown > 0 || delay > 0; }
};

// The accelerator: what predicts encoding, decoding, averaging, and work given in FLOPs.
struct Device {
  std::string name;
  int compute_capability = 0;   // of the known device that it is based on; 0: what its name says
  double flops = 0;             // reached rate, floating-point operations per second; 0: unknown
  double half_flops = 0;        // of matrix products in fp16 and bf16; 0: like the others
  bool bf16 = true;             // it has them in bf16; false: such products take fp32's rate
  BytesPerSecond memory = 0;    // reached rate; 0: such work is free
  double memory_size = 0;       // bytes that it has; 0: not known
  BytesPerSecond rounding = 0;  // by codecs that keep all elements, narrower; 0: like memory
  // Bytes of 16-bit values that the library adds up in software, on the processor that computes
  // (core/run/interference.h); 0: its sums cost nothing.
  BytesPerSecond sums = 0;
  // Elements a second that a sparse codec goes through until it has the largest ones, what it holds
  // back included; 0: by its memory traffic.
  double select = 0;
  Seconds selection = 0;   // beside its elements
  Seconds launch = 0;      // one kernel launch
  Seconds kernel_gap = 0;  // the least time between two kernels on a stream
  Seconds host_sync = 0;   // the host waits for a stream
  // What training in parallel costs a rank beyond its collectives, as soon as there are two of
  // them; published tables show a loss from one GPU to a node of eight that hardly grows with
  // further nodes, so it is not the wire. Both are 0 unless they were measured or fitted.
  // Per step, whatever the batch: the host issues and awaits the collectives and keeps several
  // processes in step. JSON: data_parallel_overhead_us.
  Seconds data_parallel_overhead = 0;
  // Share by which the model's own computation takes longer: GPUs of a node share the input
  // pipeline, host memory and power, and collectives take a few of their multiprocessors. JSON:
  // data_parallel_slowdown.
  double data_parallel_slowdown = 0;
  Overlap overlap;

  // Of matrix products in this format.
  double product_flops(DType dtype) const {
    const bool half = dtype == DType::kFp16 || (dtype == DType::kBf16 && bf16);
    return half && half_flops > 0 ? half_flops : flops;
  }
};

// How much a rank's computation varies from one micro-batch to the next. `relative` is the spread
// as a share of the mean: factor = 1 + relative * z, z standard normal or exponential with mean
// one.
struct Jitter {
  enum class Kind { kNone, kNormal, kExponential };
  Kind kind = Kind::kNone;
  double relative = 0;
  static constexpr double kGuess = 0.02;  // scenarios/published/NOTES.md says from what
  bool guessed = false;  // nobody said: simulations, too, take what is expected instead of drawing
};

// What NCCL's search of the topology finds on such a node, where the user knows it; the rest is
// guessed from the device and the tiers (core/collective/nccl.h).
struct NcclHints {
  enum class Cpu { kIntel, kAmd, kOther };
  Cpu cpu = Cpu::kIntel;
  int compute_capability = 0;        // 80 for an A100; 0: by the device's name
  std::optional<bool> nvlink;        // GPUs of a node see each other over NVLink
  std::optional<bool> nvswitch;      // through a switch, which can add up (NVLS, from Hopper on)
  std::optional<bool> gpu_direct;    // NICs reach the GPUs' memory without the CPU
  int channels = 0;                  // of the ring and tree graphs; 0: by the bandwidths
  BytesPerSecond channel_intra = 0;  // of one channel inside the node, 0: likewise
  BytesPerSecond channel_inter = 0;  // and across nodes
  bool balanced_tree = true;         // false: the TREE pattern, as with one NIC path a node
};

// How long a collective takes alone on the network, and how far to trust that.
struct CollectiveTime {
  Seconds time = 0;
  // Standard deviation of log(true time / time): 0.1 is about 10 % either way. 0: nothing is known.
  double spread = 0;
  bool measured = true;  // sizes and counts that measurements speak for
  int measured_on = 0;   // ranks of a group of the nodes that it is measured or worked out from
  double stretch = 1;    // how much longer the links work for it than they would as given
};

// What knows better than the links and rounds: a calibration, a library's own model. Nothing: the
// links decide.
using CollectiveCostModel =
    std::function<std::optional<CollectiveTime>(const collective::Collective&)>;

// What joins the nodes, where the user says or the kind of node does. tcp: sockets; tcpx: Google's
// GPUDirect over TCP; rccl: AMD's library over RDMA.
enum class Fabric { kUnknown, kTcp, kTcpx, kEfa, kSlingshot, kRdma, kRccl };

// What frameworks on this cluster call for their collectives (core/collective/library.h); kLinks:
// nothing is known of it, latency and bandwidth decide.
enum class Library { kLinks, kNccl, kGloo };

struct Cluster {
  std::string name;
  std::string source;
  int nodes = 1;
  int gpus_per_node = 1;
  std::vector<Tier> tiers;  // innermost first; the last one spans all ranks
  // Links beyond the nodes' ports; none: the tiers say all (core/fabric/topology.h).
  std::shared_ptr<const fabric::Topology> topology;
  Seconds collective_overhead = 0;  // fixed cost of each collective: launch and rendezvous
  Device device;
  Jitter jitter;
  // How fast ranks compute, relative to the workload's times: one of each of so many equal blocks
  // of nodes. Empty: all alike.
  std::vector<double> speeds;
  NcclHints nccl;
  Fabric fabric = Fabric::kUnknown;
  Library library = Library::kLinks;
  bool library_given = false;      // by the user, not by what the rest of the cluster says
  CollectiveCostModel cost_model;  // empty: NCCL's own model for what NCCL chose, else the links

  int ranks() const { return nodes * gpus_per_node; }
  Seconds step_overhead() const { return ranks() > 1 ? device.data_parallel_overhead : 0; }
};

}  // namespace syncline

// What computation and collectives take from each other where nobody measured it.
namespace syncline {

struct OverlapPrior {
  Overlap likely;
  // By which all of `likely` is scaled at the ends of what is to be expected.
  double least = 1;
  double most = 1;
};

// NCCL where a switch or a mesh of NVLinks joins a node's GPUs: on 4 A100, H100, MI210 or MI250
// training GPT and LLaMA models computation took 18.9 % longer in the mean, 3 % at least and 40.0 %
// at most, with communication beside it (Lee et al., arXiv:2507.03114, 2025). What communication
// loses was not measured there: taken to be alike.
//
// NCCL where they talk over PCIe, through host memory, or two by two: published steps of DDP on 2
// RTX 3090 (huggingface/transformers issue 9371), 2 RTX 5090 and 2 H100 (CS336's second assignment,
// by several hands) ask for 0.3 to 1.2, most for 0.6 to 0.7.
//
// Gloo: two ranks on two processors of a virtual machine that compute all the time, behind links of
// 0.5 and 1 Gbit/s (scenarios/jobs): sockets, reductions and interrupts take a quarter to nearly a
// half of the processors while a collective runs, each of which waits one tick of the scheduler for
// its turn. Where processors are left over, next to nothing is lost.
//
// Links, of which nothing is known: nothing.
inline OverlapPrior overlap_prior(Library library, bool joined_by_switch) {
  switch (library) {
    case Library::kNccl:
      if (!joined_by_switch) return {{0.65, 0.65, 0, false}, 0.5, 1.6};
      return {{0.189, 0.189, 0, false}, 0.16, 2.1};
    case Library::kGloo:
      return {{0.45, 0, 4 * kMillisecond, false}, 0.05, 1.6};
    case Library::kLinks:
      break;
  }
  return {};
}

// Returns whether a node's GPUs are three or more, joined by NVLink or the like: faster than PCIe
// is. A node with one GPU counts as such, as nothing else is known of its path.
inline bool joined_by_switch(const Cluster& cluster) {
  constexpr BytesPerSecond kFastestPcie = 64 * kGigabytePerSecond;
  if (cluster.gpus_per_node == 1 || cluster.tiers.empty()) return true;
  const bool nvlink = cluster.nccl.nvlink.value_or(cluster.tiers.front().bandwidth > kFastestPcie);
  return nvlink && cluster.gpus_per_node > 2;
}

}  // namespace syncline
