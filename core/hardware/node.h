// Machines by name: how many of which device, and the links that join them, as rated.
#pragma once

#include <span>
#include <string_view>

#include "core/hardware/device.h"
#include "core/scenario/cluster.h"
#include "core/units.h"

namespace syncline::hardware {

// Ports of one kind, each direction.
struct KnownPort {
  int count = 0;                 // of a unit: NICs of a node; 0: there is no such link
  BytesPerSecond bandwidth = 0;  // rated, of one port
  Seconds latency = 0;           // assumed (kLatencySource)
};

struct KnownNode {
  std::string_view name;     // in a scenario: "dgx-h100"
  std::string_view summary;  // "NVIDIA DGX H100"
  std::string_view device;   // name of its row
  int gpus = 1;
  KnownPort inside;        // of a GPU, all its links together as one port; count 0 with one GPU
  KnownPort outside;       // of the node: its NICs
  bool gpu_direct = true;  // NICs reach the GPUs' memory without the CPU
  NcclHints::Cpu cpu = NcclHints::Cpu::kIntel;
  std::string_view source;
};

// Latencies are nobody's figure: those with which core/collective/assumed_spread.h found how far
// prices from data sheets are off, so that its intervals hold for these nodes too.
inline constexpr std::string_view kLatencySource =
    "latencies assumed: 2 us a message over NVLink, 5 over PCIe; between nodes 5, 15 on EFA, 25 on "
    "TCP; 10 us a collective";
inline constexpr Seconds kCollectiveOverhead = 10 * kMicrosecond;

std::span<const KnownNode> nodes();

// The node of that name, or nullptr.
const KnownNode* find_node(std::string_view name);

// The node in which a device usually stands: the first row with it; nullptr where none is usual (a
// card for any server).
const KnownNode* usual_node_of(const KnownDevice& device);

// The node's device.
const KnownDevice& device_of(const KnownNode& node);

}  // namespace syncline::hardware
