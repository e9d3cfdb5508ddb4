// Devices and nodes by name: the rates of their data sheets, and the shares that training reaches.
#pragma once

#include <span>
#include <string_view>

#include "core/base/units.h"
#include "core/cluster.h"

namespace syncline::hardware {

struct KnownDevice {
  std::string_view name;     // name in a scenario: "h100-sxm"
  std::string_view summary;  // "NVIDIA H100 SXM5 80 GB"
  // Rated rates in floating-point operations per second, dense (data sheets also print twice the
  // rate "with sparsity", which training does not have).
  double flops = 0;            // fp32 outside tensor cores
  double half_flops = 0;       // fp16 products, accumulated in fp32
  BytesPerSecond memory = 0;   // rated rate
  Bytes memory_size = 0;       // as sold
  int compute_capability = 0;  // 80 for an A100; 0: not NVIDIA's
  bool bf16 = true;            // products in bf16 are as fast as in fp16; false: as in fp32
  std::string_view words;      // words that all occur in its driver's report
  std::string_view source;
};

// Returns all devices. A device has a row, with its own name, for each set of rates.
std::span<const KnownDevice> devices();

// Returns the device of that name, its own or its driver's, or nullptr.
const KnownDevice* find_device(std::string_view name);

// Returns the device that a driver reports by this name ("NVIDIA A100-SXM4-40GB", "AMD Instinct
// MI300X"), or nullptr. A part of a device (MIG) is never known.
const KnownDevice* recognise_device(std::string_view reported);

// Returns true if the name is another device's: "A100-SXM4-80GB" for a 40 GB one; "A100" fits both.
bool contradicts(std::string_view reported, const KnownDevice& device);

// Shares of the data sheets' rates that training reaches if there are no measurements. With them
// the cost of a model's operators (core/operators/evaluate.h) equals published times.
// tests/hardware/reached_test.cc has the runs, computes the shares again, and shows the error for
// models that were left out. Runs: 142 of GPT of 125 M to 30 B parameters on A100 and H100
// (mosaicml/llm-foundry, training benchmarks), and 18 of ResNet-50, VGG-16 and BERT on V100, A100
// and RTX 2080 Ti (netx-repo/training-bottleneck, arXiv 2006.10103; PaddleFleetX, ResNet-50
// benchmark, and Fleet's charts of 2019; HKBU-HPML/ddl-benchmarks, arXiv 2005.13247; NVIDIA
// DeepLearningExamples, ResNet-50 v1.5 for PyTorch, 21.03).
inline constexpr double kReachedFlops = 0.7;
inline constexpr double kReachedMemory = 0.8;
// Returns the share for half-precision products: 0.78 before Hopper, 0.66 since and on others.
double reached_half_flops(int compute_capability);

// Share of the rate of products if only a whole model's FLOPs are known: memory-bound work adds a
// third to their time.
inline constexpr double kWholeModel = 0.75;

// Host time of an eager framework per kernel. In four traces of PyTorch a tenth of the launches
// came within 8 to 15 us of the one before, half of them within 18 to 55, the profiler's time
// included. Without it, small steps on three hosts took 16 to 22, 29 to 40 and 27 to 41 us per
// kernel (scenarios/published/gpu). A compiled or captured step takes 5 or less.
inline constexpr Seconds kLaunch = 25 * kMicrosecond;
inline constexpr Seconds kLaunchAtLeast = 5 * kMicrosecond;
inline constexpr Seconds kLaunchAtMost = 50 * kMicrosecond;

// Assumed for every device, as in the clusters that ship: XLA's constant between two kernels, the
// host's wait for a stream.
inline constexpr Seconds kKernelGap = 1 * kMicrosecond;
inline constexpr Seconds kHostSync = 20 * kMicrosecond;

// Nodes by name: number and kind of devices, and the rated links between them.

// Ports of one kind, in each direction.
struct KnownPort {
  int count = 0;                     // ports per unit: NICs of a node; 0: there is no such link
  BytesPerSecond bandwidth = 0;      // rated, of one port
  Seconds latency = 0;               // assumed (kLatencySource)
  Fabric fabric = Fabric::kUnknown;  // between nodes
  double reached = 1;                // share of the rated bandwidth, if known to be less than 1
};

// Returns a port between nodes, with kLatencySource's latency for the fabric; for an unknown one
// the middle.
constexpr KnownPort port(int count, double gigabits_per_second, Fabric fabric) {
  const bool slow = fabric == Fabric::kTcp || fabric == Fabric::kTcpx;
  const bool middle = fabric == Fabric::kEfa || fabric == Fabric::kUnknown;
  const double latency_us = slow ? 25 : middle ? 15 : 5;
  return {count, gigabits_per_second * kGigabitPerSecond, latency_us * kMicrosecond, fabric};
}
// Returns a port inside a node, by one direction's rate; data sheets of NVLink add up both.
constexpr KnownPort nvlink(double gigabytes_per_second) {
  return {1, gigabytes_per_second * kGigabytePerSecond, 2 * kMicrosecond};
}
constexpr KnownPort pcie(double gigabytes_per_second) {
  return {1, gigabytes_per_second * kGigabytePerSecond, 5 * kMicrosecond};
}

// GeForce cards do not reach each other: messages go through the host's memory, at 5.5 GB/s as
// measured on 2 RTX 3090 (huggingface/transformers issue 9371, NCCL_P2P_DISABLE=1).
inline constexpr KnownPort kHostMemory = {1, 31.5e9, 5 * kMicrosecond, Fabric::kUnknown,
                                          5.5 / 31.5};
// Share of a slot's rate that copies from pinned memory reach, by judgement.
inline constexpr double kReachedHostLink = 0.8;
// Returns the x16 slot of a card of that generation.
KnownPort pcie_of(int compute_capability);

struct KnownNode {
  std::string_view name;     // name in a scenario: "dgx-h100"
  std::string_view summary;  // "NVIDIA DGX H100"
  std::string_view device;   // name of its row
  int gpus = 1;
  KnownPort inside;        // all links of a GPU as one port; count 0 with one GPU
  KnownPort outside;       // the node's NICs
  bool gpu_direct = true;  // NICs reach the GPUs' memory without the CPU
  NcclHints::Cpu cpu = NcclHints::Cpu::kIntel;
  std::string_view source;
};

// Latencies are not published. These are the ones with which core/collective/library.h found the
// error of costs from data sheets, so that its intervals hold for these nodes too.
inline constexpr std::string_view kLatencySource =
    "latencies assumed: 2 us per message over NVLink, 5 over PCIe; between nodes 5, 15 on EFA, 25 "
    "on TCP; 10 us per collective";
inline constexpr Seconds kCollectiveOverhead = 10 * kMicrosecond;

std::span<const KnownNode> nodes();

// Returns the node of that name, or nullptr.
const KnownNode* find_node(std::string_view name);

// Returns a device's usual node: the first row with it; nullptr if none is usual (a card for any
// server).
const KnownNode* usual_node_of(const KnownDevice& device);

// Returns the node's device.
const KnownDevice& device_of(const KnownNode& node);

}  // namespace syncline::hardware
