#include "core/hardware/node.h"

#include <algorithm>
#include <array>
#include <cassert>

namespace syncline::hardware {
namespace {

using Cpu = NcclHints::Cpu;

// Inside a node: what data sheets call NVLink's bandwidth counts both directions.
constexpr KnownPort nvlink(double gigabytes_per_second) {
  return {1, gigabytes_per_second * kGigabytePerSecond, 2 * kMicrosecond};
}
constexpr KnownPort pcie(double gigabytes_per_second) {
  return {1, gigabytes_per_second * kGigabytePerSecond, 5 * kMicrosecond};
}
constexpr KnownPort kNvlink2 = nvlink(150);
constexpr KnownPort kNvlink3 = nvlink(300);
constexpr KnownPort kNvlink4 = nvlink(450);
constexpr KnownPort kNvlink5 = nvlink(900);
constexpr KnownPort kPcie3 = pcie(15.75);  // x16, behind its line code
constexpr KnownPort kPcie4 = pcie(31.5);
constexpr KnownPort kInfinityFabric = nvlink(448);  // seven links of 64 GB/s a direction

// Between nodes.
constexpr KnownPort rdma(int count, double gigabits_per_second) {
  return {count, gigabits_per_second * kGigabitPerSecond, 5 * kMicrosecond};
}
constexpr KnownPort efa(int count, double gigabits_per_second) {
  return {count, gigabits_per_second * kGigabitPerSecond, 15 * kMicrosecond};
}
constexpr KnownPort tcp(int count, double gigabits_per_second) {
  return {count, gigabits_per_second * kGigabitPerSecond, 25 * kMicrosecond};
}

constexpr std::string_view kAws = "AWS EC2 accelerated computing instances page, 2025";
constexpr std::string_view kGoogle = "Google Cloud GPU machine types and network pages, 2025";
constexpr std::string_view kAzure = "Azure virtual machine sizes, GPU accelerated, 2025";

// The first node of a device is its usual one.
constexpr std::array kNodes{
    KnownNode{"dgx-1", "NVIDIA DGX-1, 8 V100", "v100-sxm", 8, kNvlink2, rdma(4, 100), true,
              Cpu::kIntel, "NVIDIA DGX-1 data sheet, 2017"},
    KnownNode{"p3.16xlarge", "AWS, 8 V100", "v100-sxm", 8, kNvlink2, tcp(1, 25), false, Cpu::kIntel,
              kAws},
    KnownNode{"dgx-2", "NVIDIA DGX-2, 16 V100", "v100-sxm-32gb", 16, kNvlink2, rdma(8, 100), true,
              Cpu::kIntel, "NVIDIA DGX-2 data sheet, 2018"},
    KnownNode{"p3dn.24xlarge", "AWS, 8 V100", "v100-sxm-32gb", 8, kNvlink2, efa(1, 100), false,
              Cpu::kIntel, kAws},
    KnownNode{"nd40rs_v2", "Azure, 8 V100", "v100-sxm-32gb", 8, kNvlink2, rdma(1, 100), true,
              Cpu::kIntel, kAzure},
    KnownNode{"g4dn.12xlarge", "AWS, 4 T4", "t4", 4, kPcie3, tcp(1, 50), false, Cpu::kIntel, kAws},
    KnownNode{"dgx-a100", "NVIDIA DGX A100 40 GB, 8 A100", "a100-sxm-40gb", 8, kNvlink3,
              rdma(8, 200), true, Cpu::kAmd, "NVIDIA DGX A100 data sheet, 2020"},
    KnownNode{"p4d.24xlarge", "AWS, 8 A100", "a100-sxm-40gb", 8, kNvlink3, efa(4, 100), true,
              Cpu::kIntel, kAws},
    KnownNode{"a2-highgpu-8g", "Google Cloud, 8 A100", "a100-sxm-40gb", 8, kNvlink3, tcp(1, 100),
              false, Cpu::kIntel, kGoogle},
    KnownNode{"nd96asr_v4", "Azure, 8 A100", "a100-sxm-40gb", 8, kNvlink3, rdma(8, 200), true,
              Cpu::kAmd, kAzure},
    KnownNode{"dgx-a100-80gb", "NVIDIA DGX A100 80 GB, 8 A100", "a100-sxm-80gb", 8, kNvlink3,
              rdma(8, 200), true, Cpu::kAmd, "NVIDIA DGX A100 data sheet, 2021"},
    KnownNode{"p4de.24xlarge", "AWS, 8 A100", "a100-sxm-80gb", 8, kNvlink3, efa(4, 100), true,
              Cpu::kIntel, kAws},
    KnownNode{"a2-ultragpu-8g", "Google Cloud, 8 A100", "a100-sxm-80gb", 8, kNvlink3, tcp(1, 100),
              false, Cpu::kIntel, kGoogle},
    KnownNode{"nd96amsr_a100_v4", "Azure, 8 A100", "a100-sxm-80gb", 8, kNvlink3, rdma(8, 200), true,
              Cpu::kAmd, kAzure},
    KnownNode{"g5.48xlarge", "AWS, 8 A10G", "a10g", 8, kPcie4, tcp(1, 100), false, Cpu::kAmd, kAws},
    KnownNode{"g6.48xlarge", "AWS, 8 L4", "l4", 8, kPcie4, tcp(1, 100), false, Cpu::kAmd, kAws},
    KnownNode{"g2-standard-96", "Google Cloud, 8 L4", "l4", 8, kPcie4, tcp(1, 100), false,
              Cpu::kIntel, kGoogle},
    KnownNode{"g6e.48xlarge", "AWS, 8 L40S", "l40s", 8, kPcie4, efa(4, 100), false, Cpu::kAmd,
              kAws},
    KnownNode{"workstation-4090", "a workstation, 4 RTX 4090", "rtx-4090", 4, kPcie4, tcp(1, 10),
              false, Cpu::kAmd,
              "assumed: PCIe 4.0 x16 to every card, 10 Gbit/s Ethernet on the board"},
    KnownNode{"dgx-h100", "NVIDIA DGX H100, 8 H100", "h100-sxm", 8, kNvlink4, rdma(8, 400), true,
              Cpu::kIntel, "NVIDIA DGX H100 data sheet, 2023"},
    KnownNode{"p5.48xlarge", "AWS, 8 H100", "h100-sxm", 8, kNvlink4, efa(32, 100), true, Cpu::kAmd,
              kAws},
    KnownNode{"a3-highgpu-8g", "Google Cloud, 8 H100", "h100-sxm", 8, kNvlink4, tcp(4, 200), true,
              Cpu::kIntel, kGoogle},
    KnownNode{"a3-megagpu-8g", "Google Cloud, 8 H100", "h100-sxm", 8, kNvlink4, tcp(8, 200), true,
              Cpu::kIntel, kGoogle},
    KnownNode{"nd96isr_h100_v5", "Azure, 8 H100", "h100-sxm", 8, kNvlink4, rdma(8, 400), true,
              Cpu::kIntel, kAzure},
    KnownNode{"nc80adis_h100_v5", "Azure, 2 H100 NVL", "h100-nvl", 2, nvlink(300), tcp(1, 80),
              false, Cpu::kAmd, kAzure},
    KnownNode{"dgx-h200", "NVIDIA DGX H200, 8 H200", "h200-sxm", 8, kNvlink4, rdma(8, 400), true,
              Cpu::kIntel, "NVIDIA DGX H200 data sheet, 2024"},
    KnownNode{"p5en.48xlarge", "AWS, 8 H200", "h200-sxm", 8, kNvlink4, efa(16, 200), true,
              Cpu::kIntel, kAws},
    KnownNode{"a3-ultragpu-8g", "Google Cloud, 8 H200", "h200-sxm", 8, kNvlink4, rdma(8, 400), true,
              Cpu::kIntel, kGoogle},
    KnownNode{"nd96isr_h200_v5", "Azure, 8 H200", "h200-sxm", 8, kNvlink4, rdma(8, 400), true,
              Cpu::kIntel, kAzure},
    KnownNode{"alps-gh200", "CSCS Alps, 4 GH200", "gh200", 4, kNvlink4, rdma(4, 200), true,
              Cpu::kOther, "CSCS Alps documentation, 2024"},
    KnownNode{"dgx-b200", "NVIDIA DGX B200, 8 B200", "b200", 8, kNvlink5, rdma(8, 400), true,
              Cpu::kIntel, "NVIDIA DGX B200 data sheet, 2025"},
    KnownNode{"p6-b200.48xlarge", "AWS, 8 B200", "b200", 8, kNvlink5, efa(8, 400), true,
              Cpu::kIntel, kAws},
    KnownNode{"a4-highgpu-8g", "Google Cloud, 8 B200", "b200", 8, kNvlink5, rdma(8, 400), true,
              Cpu::kIntel, kGoogle},
    KnownNode{"gb200-nvl72", "NVIDIA GB200 NVL72, 72 GPUs of a rack", "gb200", 72, kNvlink5,
              rdma(72, 400), true, Cpu::kOther, "NVIDIA GB200 NVL72 data sheet, 2025"},
    KnownNode{"mi300x-platform", "AMD Instinct MI300X platform, 8 MI300X", "mi300x", 8,
              kInfinityFabric, rdma(8, 400), true, Cpu::kAmd,
              "AMD Instinct MI300X platform data sheet, 2023; a 400 Gbit/s NIC a GPU assumed"},
    KnownNode{"nd96isr_mi300x_v5", "Azure, 8 MI300X", "mi300x", 8, kInfinityFabric, rdma(8, 400),
              true, Cpu::kIntel, kAzure},
};

}  // namespace

std::span<const KnownNode> nodes() { return kNodes; }

const KnownNode* find_node(std::string_view name) {
  const auto* row = std::find_if(kNodes.begin(), kNodes.end(),
                                 [&](const auto& node) { return node.name == name; });
  return row == kNodes.end() ? nullptr : row;
}

const KnownNode* usual_node_of(const KnownDevice& device) {
  const auto* row = std::find_if(kNodes.begin(), kNodes.end(),
                                 [&](const auto& node) { return node.device == device.name; });
  return row == kNodes.end() ? nullptr : row;
}

const KnownDevice& device_of(const KnownNode& node) {
  const KnownDevice* device = find_device(node.device);
  assert(device != nullptr && "a node's device is a row of the table");
  return *device;
}

}  // namespace syncline::hardware
