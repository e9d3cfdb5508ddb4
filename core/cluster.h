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

// Maximum number of tiers: inside the node, between nodes, and a few above.
inline constexpr int kMaxTiers = 6;

// One level of the network. A *unit* of the innermost tier is a rank, of the next one a node, and
// so on; each unit has one full-duplex port into its tier's switch. A message costs
// latency + bytes / bandwidth on the outermost tier that it crosses.
struct Tier {
  std::string name;
  int span = 1;                  // ranks below one switch of this tier
  Seconds latency = 0;           // start-up time of a message
  BytesPerSecond bandwidth = 0;  // of one unit's port per direction, all its NICs together
  int nics = 1;
  double efficiency = 1;  // bandwidth / rated bandwidth; libraries tune by the rated one
  bool measured = false;  // `bandwidth` was reached by collectives, not read in a data sheet
  // Maximum rate of a single flow (one communicator's connection), e.g. one TCP stream on a fast
  // link; more streams fill the port.
  BytesPerSecond flow_cap = std::numeric_limits<double>::infinity();
  // The switch carries (sum of its ports) / oversubscription.
  double oversubscription = 1;
  double upload_ratio = 1;  // upload / download bandwidth of a port; `bandwidth` is the download

  BytesPerSecond upload() const { return bandwidth * upload_ratio; }
  BytesPerSecond narrower() const {
    return bandwidth * std::min(1.0, upload_ratio);
  }  // slower direction
};

// Slowdown of computation and of a collective that run at the same time: NCCL's kernels take
// multiprocessors and memory, Gloo's threads and sockets take processors.
struct Overlap {
  // Relative increase of computation time. JSON: overlap_slowdown; default: the cluster's
  // assumption (core/job/overlap.h).
  double slowdown = 0;
  // Relative increase of the collective's time. JSON: overlap_collective_slowdown; default: that of
  // computation.
  double collective_slowdown = 0;
  // Extra seconds of each collective of any size that begins during computation: its threads wait
  // for a processor that computes. JSON: overlap_delay_us.
  Seconds delay = 0;
  bool given = false;
  // Uncertainty of the three given values together: the standard deviation of log(true / given).
  // JSON: overlap_spread.
  double spread = kMeasuredSpread;

  static constexpr double kMeasuredSpread = 0.2;  // of recordings by `record`, which states none

  bool any() const { return slowdown > 0 || collective_slowdown > 0 || delay > 0; }
};

// The accelerator. Predicts the time of encoding, decoding, averaging, and of work given in FLOPs.
struct Device {
  std::string name;
  int compute_capability = 0;   // of the known device that it is based on; 0: by its name
  double flops = 0;             // reached rate, floating-point operations per second; 0: unknown
  double half_flops = 0;        // of matrix products in fp16 and bf16; 0: like the others
  bool bf16 = true;             // bf16 products have that rate; false: they take fp32's rate
  BytesPerSecond memory = 0;    // reached rate; 0: such work is free
  double memory_size = 0;       // bytes; 0: unknown
  BytesPerSecond rounding = 0;  // rate of codecs that only narrow the elements; 0: like memory
  // Bytes per second of 16-bit values that the library sums in software, on the processor that
  // computes (core/run/interference.h); 0: such sums are free.
  BytesPerSecond sums = 0;
  // Elements per second of a sparse codec's search for the largest ones, its residual included; 0:
  // by its memory traffic.
  double select = 0;
  Seconds selection = 0;         // fixed time of that search, in addition
  Seconds launch = 0;            // one kernel launch
  Seconds kernel_gap = 0;        // minimum between two kernels on a stream
  Seconds host_sync = 0;         // the host waits for a stream
  BytesPerSecond host_link = 0;  // of its own link to the host's memory; 0: core/job/overlap.h's
  Seconds host_update = 0;       // of one parameter, by all processors of a node; 0: likewise
  // Cost of parallel training to a rank in addition to its collectives, from two ranks on.
  // Published tables show a loss from one GPU to a node of eight. It hardly grows with further
  // nodes, so the wire is not its cause. Both are 0 unless measured or fitted. Per step, for any
  // batch: the host issues and awaits the collectives and keeps several processes in step. JSON:
  // data_parallel_overhead_us.
  Seconds data_parallel_overhead = 0;
  // Relative increase of the model's own computation time: GPUs of a node share the input pipeline,
  // host memory and power, and collectives take a few multiprocessors. JSON:
  // data_parallel_slowdown.
  double data_parallel_slowdown = 0;
  Overlap overlap;

  // Returns the rate of matrix products in this format.
  double product_flops(DType dtype) const {
    const bool half = dtype == DType::kFp16 || (dtype == DType::kBf16 && bf16);
    return half && half_flops > 0 ? half_flops : flops;
  }
};

// Variation of a rank's computation from one micro-batch to the next. `relative` is the spread as a
// share of the mean: factor = 1 + relative * z, z standard normal or exponential with mean one.
struct Jitter {
  enum class Kind { kNone, kNormal, kExponential };
  Kind kind = Kind::kNone;
  double relative = 0;
  static constexpr double kGuess = 0.02;  // derived in scenarios/published/NOTES.md
  bool guessed = false;  // not given by the user: simulations take the expectation, draw none
};

// Result of NCCL's topology search on such a node, if the user knows it; the rest is guessed from
// the device and the tiers (core/collective/nccl.h).
struct NcclHints {
  enum class Cpu { kIntel, kAmd, kOther };
  Cpu cpu = Cpu::kIntel;
  int compute_capability = 0;        // 80 for an A100; 0: by the device's name
  std::optional<bool> nvlink;        // GPUs of a node see each other over NVLink
  std::optional<bool> nvswitch;      // through a switch, which can add up (NVLS, from Hopper on)
  std::optional<bool> gpu_direct;    // NICs reach the GPUs' memory without the CPU
  int channels = 0;                  // of the ring and tree graphs; 0: by the bandwidths
  BytesPerSecond channel_intra = 0;  // of one channel inside the node; 0: by the bandwidths
  BytesPerSecond channel_inter = 0;  // of one channel across nodes; 0: by the bandwidths
  bool balanced_tree = true;         // false: the TREE pattern, used with one NIC path per node
};

// Time of a collective alone on the network, with its uncertainty.
struct CollectiveTime {
  Seconds time = 0;
  // Standard deviation of log(true time / time): 0.1 is about 10 % either way. 0: unknown.
  double spread = 0;
  bool measured = true;      // within the measured sizes and counts
  int measured_on = 0;       // ranks of the group of nodes that it was measured on or computed from
  double link_slowdown = 1;  // time that links are busy / the same by the links as given
};

// A source of times that overrides links and rounds: a calibration, a library's own model. Empty:
// the links decide.
using CollectiveCostModel =
    std::function<std::optional<CollectiveTime>(const collective::Collective&)>;

// The network between nodes, from the user or the kind of node. tcp: sockets; tcpx: Google's
// GPUDirect over TCP; rccl: AMD's library over RDMA.
enum class Fabric { kUnknown, kTcp, kTcpx, kEfa, kSlingshot, kRdma, kRccl };

// The library that runs the collectives of frameworks on this cluster (core/collective/library.h).
// kLinks: unknown, latency and bandwidth decide.
enum class Library { kLinks, kNccl, kGloo };

struct Cluster {
  std::string name;
  std::string source;
  int nodes = 1;
  int gpus_per_node = 1;
  std::vector<Tier> tiers;  // innermost first; the last one spans all ranks
  // Links beyond the nodes' ports; null: the tiers are the whole network (core/fabric/topology.h).
  std::shared_ptr<const fabric::Topology> topology;
  Seconds collective_overhead = 0;  // fixed cost of each collective: launch and rendezvous
  Device device;
  Jitter jitter;
  // Speed of ranks relative to the workload's times, one value per equal block of nodes. Empty: all
  // alike.
  std::vector<double> speeds;
  NcclHints nccl;
  Fabric fabric = Fabric::kUnknown;
  Library library = Library::kLinks;
  bool library_given = false;      // by the user, not derived from the rest of the cluster
  CollectiveCostModel cost_model;  // empty: NCCL's own model for NCCL's choices, else the links

  int ranks() const { return nodes * gpus_per_node; }
  Seconds step_overhead() const { return ranks() > 1 ? device.data_parallel_overhead : 0; }
};

}  // namespace syncline

// Mutual slowdown of computation and collectives on clusters without a measurement.
namespace syncline {

struct OverlapPrior {
  Overlap likely;
  // Factors on all of `likely` at the lower and upper end of the expected range.
  double least = 1;
  double most = 1;
};

// Returns the prior for NCCL if a switch or a mesh of NVLinks joins a node's GPUs: on 4 A100, H100,
// MI210 or MI250 training GPT and LLaMA models computation took 18.9 % longer in the mean (3 %
// to 40.0 %) during communication (Lee et al., arXiv:2507.03114, 2025). The slowdown of
// communication was not measured there: taken to be equal.
//
// NCCL if they talk over PCIe, through host memory, or two by two: published steps of DDP on 2
// RTX 3090 (huggingface/transformers issue 9371), 2 RTX 5090 and 2 H100 (CS336's second assignment,
// of several students) are met by slowdowns of 0.3 to 1.2, most by 0.6 to 0.7.
//
// Gloo: two ranks on two processors of a virtual machine that compute all the time, over links of
// 0.5 and 1 Gbit/s (scenarios/jobs): sockets, reductions and interrupts take a quarter to nearly a
// half of the processors during a collective, and each collective waits one scheduler tick for its
// turn. With idle processors the loss is near zero.
//
// Links: no slowdown, because they are of an unknown library.
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

// True if a node's GPUs are three or more, joined by NVLink or the like: faster than PCIe. A node
// with one GPU counts as joined, because its path is unknown otherwise.
inline bool joined_by_switch(const Cluster& cluster) {
  constexpr BytesPerSecond kFastestPcie = 64 * kGigabytePerSecond;
  if (cluster.gpus_per_node == 1 || cluster.tiers.empty()) return true;
  const bool nvlink = cluster.nccl.nvlink.value_or(cluster.tiers.front().bandwidth > kFastestPcie);
  return nvlink && cluster.gpus_per_node > 2;
}

}  // namespace syncline
