// The tables of devices and nodes: consistent in themselves and with what NCCL's model knows, and
// found by what drivers report.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "catalogue/hardware/device.h"
#include "core/collective/library.h"

namespace syncline::hardware {
namespace {

// What only sounds alike is no device.
TEST(Devices, AreRecognisedByWhatDriversReport) {
  const std::pair<const char*, const char*> rows[] = {
      {"NVIDIA A100-SXM4-40GB", "a100-sxm-40gb"},
      {"A100-SXM4-40GB", "a100-sxm-40gb"},
      {"NVIDIA A100-PG509-200", "a100-sxm-40gb"},
      {"NVIDIA A100-SXM4-80GB", "a100-sxm-80gb"},
      {"NVIDIA A100 80GB PCIe", "a100-pcie-80gb"},
      {"NVIDIA A100-PCIE-40GB", "a100-pcie-40gb"},
      {"Tesla V100-SXM2-16GB", "v100-sxm"},
      {"Tesla V100-SXM2-32GB", "v100-sxm-32gb"},
      {"Tesla V100-PCIE-32GB", "v100-pcie"},
      {"NVIDIA H100 80GB HBM3", "h100-sxm"},
      {"NVIDIA H100 PCIe", "h100-pcie"},
      {"NVIDIA H100 NVL", "h100-nvl"},
      {"NVIDIA H200", "h200-sxm"},
      {"NVIDIA GH200 480GB", "gh200"},
      {"NVIDIA B200", "b200"},
      {"NVIDIA GB200", "gb200"},
      {"AMD Instinct MI300X", "mi300x"},
      {"AMD Instinct MI300X VF", "mi300x"},
      {"AMD Instinct MI250X", "mi250x"},
      {"AMD Instinct MI325X", "mi325x"},
      {"AMD Instinct MI350X", "mi350x"},
      {"AMD Instinct MI355X", ""},
      {"NVIDIA B300 SXM6 AC", "b300"},
      {"NVIDIA H200 NVL", "h200-nvl"},
      {"NVIDIA A40", "a40"},
      {"NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "rtx-pro-6000"},
      {"NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "rtx-pro-6000-max-q"},
      {"NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtx-pro-6000-server"},
      {"NVIDIA RTX 6000 Ada Generation", ""},
      {"Tesla T4", "t4"},
      {"NVIDIA L4", "l4"},
      {"NVIDIA L40S", "l40s"},
      {"NVIDIA A10", "a10"},
      {"NVIDIA A10G", "a10g"},
      {"NVIDIA GeForce RTX 4090", "rtx-4090"},
      {"NVIDIA GeForce RTX 2080 Ti", "rtx-2080-ti"},
      {"Tesla P100-SXM2-16GB", "p100-sxm"},
      {"NVIDIA GeForce GTX 1080 Ti", "gtx-1080-ti"},
      {"", ""},
      {"NVIDIA A100-SXM4-40GB MIG 1g.5gb", ""},
      {"NVIDIA GeForce GTX 1080", ""},
      {"NVIDIA A1000 Laptop GPU", ""},
      {"Tesla T40", ""}};
  for (const auto& [reported, name] : rows) {
    const KnownDevice* device = recognise_device(reported);
    EXPECT_EQ(device == nullptr ? "" : device->name, name) << reported;
  }
}

// A name finds its row, and so do its name and its summary where somebody writes them as a label.
TEST(Devices, NamesAreDistinctAndRecognised) {
  std::set<std::string_view> names;
  for (const KnownDevice& device : devices()) {
    EXPECT_TRUE(names.insert(device.name).second) << device.name;
    EXPECT_EQ(find_device(device.name), &device);
    EXPECT_NE(recognise_device(device.name), nullptr) << device.name;
  }
  EXPECT_EQ(find_device("h100"), nullptr);
  EXPECT_EQ(find_device("NVIDIA H200"), find_device("h200-sxm"));
  EXPECT_EQ(find_device("NVIDIA H100 80GB HBM3 MIG 1g.10gb"), nullptr);
}

// A unit that slipped shows against every other row: memory feeds between 4 and 120 fp32 operations
// a byte, and half precision is 1.9 to 34 times as fast, but on Pascal's consumer cards.
TEST(Devices, FiguresAreOfOneKind) {
  for (const KnownDevice& device : devices()) {
    EXPECT_GT(device.flops, 5e12) << device.name;
    EXPECT_GT(device.flops / device.memory, 4) << device.name;
    EXPECT_LT(device.flops / device.memory, 120) << device.name;
    EXPECT_GE(device.half_flops / device.flops, device.compute_capability == 61 ? 1 : 1.9)
        << device.name;
    EXPECT_LT(device.half_flops / device.flops, 34) << device.name;
    EXPECT_GE(device.memory_size, 11'000'000'000) << device.name;
    EXPECT_EQ(device.bf16, device.compute_capability == 0 || device.compute_capability >= 80)
        << device.name;
    EXPECT_FALSE(device.source.empty());
  }
}

// What a scenario with such a device is evaluated by: NCCL for NVIDIA's, with the table's
// capability.
TEST(Devices, CapabilitiesAreThoseOfNcclsModel) {
  for (const KnownDevice& device : devices()) {
    for (const std::string_view label : {device.name, device.summary}) {
      Cluster cluster;
      cluster.device.name = label;
      EXPECT_EQ(collective::named_capability(cluster), device.compute_capability) << label;
      EXPECT_EQ(collective::likely_library(cluster) == Library::kNccl,
                device.compute_capability > 0);
    }
  }
}

TEST(Nodes, AreMadeOfKnownDevices) {
  std::set<std::string_view> names;
  for (const KnownNode& node : nodes()) {
    EXPECT_TRUE(names.insert(node.name).second) << node.name;
    EXPECT_EQ(find_node(node.name), &node);
    EXPECT_EQ(device_of(node).name, node.device);
    ASSERT_NE(usual_node_of(device_of(node)), nullptr);
    EXPECT_EQ(usual_node_of(device_of(node))->device, node.device);
    EXPECT_FALSE(node.source.empty());
    EXPECT_GT(node.gpus, 1);
    EXPECT_EQ(node.inside.count, 1);
    EXPECT_GE(node.outside.count, 1);
    // A GPU's port inside the node is the faster one, by its share of the NICs.
    EXPECT_GT(node.inside.bandwidth * node.gpus, node.outside.bandwidth * node.outside.count)
        << node.name;
    EXPECT_GE(node.outside.latency, node.inside.latency) << node.name;
  }
  EXPECT_EQ(find_node("dgx"), nullptr);
}

// What joins nodes decides how far data sheets are believed (core/collective/library.h).
TEST(Nodes, SayWhatJoinsThem) {
  for (const KnownNode& node : nodes()) {
    EXPECT_EQ(node.outside.count > 0, node.outside.fabric != Fabric::kUnknown) << node.name;
    const bool amd = device_of(node).compute_capability == 0;
    EXPECT_EQ(amd, node.outside.fabric == Fabric::kRccl) << node.name;
    EXPECT_GT(node.inside.reached, 0);
    EXPECT_LE(node.inside.reached, 1);
  }
  EXPECT_EQ(find_node("p5.48xlarge")->outside.fabric, Fabric::kEfa);
  EXPECT_EQ(find_node("alps-gh200")->outside.fabric, Fabric::kSlingshot);
  EXPECT_EQ(find_node("a3-highgpu-8g")->outside.fabric, Fabric::kTcpx);
  EXPECT_EQ(find_node("dgx-h100")->outside.fabric, Fabric::kRdma);
}

TEST(Nodes, UsualOnes) {
  const auto usual = [](std::string_view device) {
    return std::string(usual_node_of(*find_device(device))->name);
  };
  EXPECT_EQ(usual("h100-sxm"), "dgx-h100");
  EXPECT_EQ(usual("a100-sxm-40gb"), "dgx-a100");
  EXPECT_EQ(usual("mi300x"), "mi300x-platform");
  EXPECT_EQ(usual("mi325x"), "mi325x-platform");
  EXPECT_EQ(usual("mi350x"), "mi350x-platform");
  EXPECT_EQ(usual("mi250x"), "frontier");
  EXPECT_EQ(usual("b300"), "dgx-b300");
  EXPECT_EQ(usual("t4"), "g4dn.12xlarge");
  EXPECT_EQ(usual_node_of(*find_device("h100-pcie")), nullptr);
}

}  // namespace
}  // namespace syncline::hardware
