// NCCL 2.28.9's own model of a collective's time, by which it chooses algorithm and protocol.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "core/base/units.h"
#include "core/cluster.h"
#include "core/collective/collective.h"

namespace syncline::collective {

// Kinds of paths between two ends, the nearest first.
enum class NcclPath { kLoc, kNvl, kNvb, kPix, kPxb, kPxn, kPhb, kSys, kNet };
enum class NcclPattern { kBalancedTree, kTree };

// Result of the search for one algorithm. Bandwidths are those of one channel.
struct NcclGraph {
  double channels = 0;  // 0: none found, the algorithm is not offered
  BytesPerSecond intra = 0;
  BytesPerSecond inter = 0;
  NcclPath path_intra = NcclPath::kLoc;
  NcclPath path_inter = NcclPath::kPix;
  NcclPattern pattern = NcclPattern::kBalancedTree;
  bool same_channels = true;
  Seconds inter_latency = 0;  // of the NIC, beyond NCCL's own constants
  Seconds intra_latency = 0;  // of a link inside the node, if longer than NCCL's constants
};

struct NcclTopology {
  int nodes = 1;
  int ranks = 2;
  int least_capability = 80;  // compute capability: 70 Volta, 80 Ampere, 90 Hopper, 100 Blackwell
  int most_capability = 80;
  NcclHints::Cpu cpu = NcclHints::Cpu::kIntel;
  NcclGraph ring;
  NcclGraph tree;  // PAT runs over it too
  NcclGraph nvls;
  NcclGraph collnet_direct;
  NcclGraph collnet_chain;
  bool nvswitch = false;
  bool collnet = false;  // the network can add up (SHARP)
  int channels = 2;      // of the communicator: twice the ring's, as a rule

  int gpus_per_node() const { return ranks / nodes; }  // rounded down, as in NCCL
};

inline constexpr std::size_t kNcclAlgorithms = 7;
inline constexpr std::size_t kNcclProtocols = 3;

struct NcclCell {
  Seconds latency = 0;
  BytesPerSecond bandwidth = 0;  // payload / time; 0: not offered
};

// Cells by algorithm and protocol, for one kind of collective.
using NcclTable = std::array<std::array<NcclCell, kNcclProtocols>, kNcclAlgorithms>;

NcclTable nccl_table(const NcclTopology& topology, CollectiveKind kind);

struct NcclChoice {
  NcclPick pick;
  Seconds time = 0;
};

// Returns the minimum time of all offered cells; ties go to the first. Requires at least two ranks.
NcclChoice nccl_choice(const NcclTopology& topology, const NcclTable& table, CollectiveKind kind,
                       double bytes);

// Returns the time of one cell of the table outside ncclGroupStart/End; empty if it is not offered.
std::optional<Seconds> nccl_time(const NcclTopology& topology, const NcclTable& table,
                                 CollectiveKind kind, const NcclPick& pick, double bytes);

// Returns NCCL's own names: "Ring", "LL128", ...
std::string_view to_string(NcclAlgorithm algorithm);
std::string_view to_string(NcclProtocol protocol);

}  // namespace syncline::collective
