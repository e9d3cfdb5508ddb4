#include "catalogue/hardware/device.h"

#include <algorithm>
#include <cassert>
#include <cctype>
#include <iterator>
#include <string>
#include <vector>

namespace syncline::hardware {
namespace {

constexpr double kTera = 1e12;
constexpr BytesPerSecond kGB = kGigabytePerSecond;
constexpr Bytes kGigabyte = 1'000'000'000;

// Dense rates; half of those with sparsity if a data sheet prints only these. A device recognised
// by fewer words than another comes after it.
constexpr KnownDevice kDevices[] = {
    {"p100-sxm", "NVIDIA P100 SXM2 16 GB", 10.6 * kTera, 21.2 * kTera, 732 * kGB, 16 * kGigabyte,
     60, false, "P100", "NVIDIA Tesla P100 data sheet, 2016"},
    {"gtx-1080-ti", "NVIDIA GeForce GTX 1080 Ti", 11.3 * kTera, 11.3 * kTera, 484 * kGB,
     11 * kGigabyte, 61, false, "1080 TI", "NVIDIA GeForce GTX 1080 Ti data sheet, 2017"},
    {"v100-pcie", "NVIDIA V100 PCIe", 14 * kTera, 112 * kTera, 900 * kGB, 16 * kGigabyte, 70, false,
     "V100 PCIE", "NVIDIA V100 data sheet, 2020"},
    {"v100-sxm-32gb", "NVIDIA V100 SXM2 32 GB", 15.7 * kTera, 125 * kTera, 900 * kGB,
     32 * kGigabyte, 70, false, "V100 32GB", "NVIDIA V100 data sheet, 2020"},
    {"v100-sxm", "NVIDIA V100 SXM2 16 GB", 15.7 * kTera, 125 * kTera, 900 * kGB, 16 * kGigabyte, 70,
     false, "V100", "NVIDIA V100 data sheet, 2020"},
    {"t4", "NVIDIA T4", 8.1 * kTera, 65 * kTera, 300 * kGB, 16 * kGigabyte, 75, false, "T4",
     "NVIDIA T4 data sheet, 2019"},
    {"rtx-2080-ti", "NVIDIA GeForce RTX 2080 Ti", 13.4 * kTera, 53.8 * kTera, 616 * kGB,
     11 * kGigabyte, 75, false, "2080 TI",
     "NVIDIA Turing architecture whitepaper, 2018, reference card"},
    {"a100-pcie-80gb", "NVIDIA A100 PCIe 80 GB", 19.5 * kTera, 312 * kTera, 1935 * kGB,
     80 * kGigabyte, 80, true, "A100 80GB PCIE", "NVIDIA A100 data sheet, 2022"},
    {"a100-sxm-80gb", "NVIDIA A100 SXM4 80 GB", 19.5 * kTera, 312 * kTera, 2039 * kGB,
     80 * kGigabyte, 80, true, "A100 80GB", "NVIDIA A100 data sheet, 2022"},
    {"a100-pcie-40gb", "NVIDIA A100 PCIe 40 GB", 19.5 * kTera, 312 * kTera, 1555 * kGB,
     40 * kGigabyte, 80, true, "A100 PCIE", "NVIDIA A100 data sheet, 2020"},
    {"a100-sxm-40gb", "NVIDIA A100 SXM4 40 GB", 19.5 * kTera, 312 * kTera, 1555 * kGB,
     40 * kGigabyte, 80, true, "A100", "NVIDIA A100 data sheet, 2020"},
    {"a10", "NVIDIA A10", 31.2 * kTera, 125 * kTera, 600 * kGB, 24 * kGigabyte, 86, true, "A10",
     "NVIDIA A10 data sheet, 2021"},
    {"a10g", "NVIDIA A10G", 35 * kTera, 70 * kTera, 600 * kGB, 24 * kGigabyte, 86, true, "A10G",
     "NVIDIA A10G data sheet, 2021"},
    {"a40", "NVIDIA A40", 37.4 * kTera, 149.7 * kTera, 696 * kGB, 48 * kGigabyte, 86, true, "A40",
     "NVIDIA A40 data sheet, 2022"},
    {"rtx-3090", "NVIDIA GeForce RTX 3090", 35.6 * kTera, 71 * kTera, 936 * kGB, 24 * kGigabyte, 86,
     true, "3090", "NVIDIA Ampere GA102 whitepaper, 2020"},
    {"l4", "NVIDIA L4", 30.3 * kTera, 121 * kTera, 300 * kGB, 24 * kGigabyte, 89, true, "L4",
     "NVIDIA L4 data sheet, 2023"},
    {"l40s", "NVIDIA L40S", 91.6 * kTera, 362 * kTera, 864 * kGB, 48 * kGigabyte, 89, true, "L40S",
     "NVIDIA L40S data sheet, 2023"},
    {"rtx-4090", "NVIDIA GeForce RTX 4090", 82.6 * kTera, 165.2 * kTera, 1008 * kGB, 24 * kGigabyte,
     89, true, "4090", "NVIDIA Ada architecture whitepaper, 2022"},
    {"rtx-5090", "NVIDIA GeForce RTX 5090", 104.8 * kTera, 209.5 * kTera, 1792 * kGB,
     32 * kGigabyte, 120, true, "5090", "NVIDIA RTX Blackwell architecture whitepaper, 2025"},
    {"rtx-pro-6000-max-q", "NVIDIA RTX PRO 6000 Max-Q", 110 * kTera, 438.9 * kTera, 1792 * kGB,
     96 * kGigabyte, 120, true, "PRO 6000 MAX Q",
     "NVIDIA RTX PRO 6000 Blackwell Max-Q data sheet, 2025; fp16 an eighth of its sparse FP4"},
    {"rtx-pro-6000-server", "NVIDIA RTX PRO 6000 Server 96 GB", 120 * kTera, 500 * kTera,
     1597 * kGB, 96 * kGigabyte, 120, true, "PRO 6000 SERVER",
     "NVIDIA RTX PRO 6000 Blackwell Server Edition data sheet, 2025"},
    {"rtx-pro-6000", "NVIDIA RTX PRO 6000 96 GB", 125 * kTera, 500 * kTera, 1792 * kGB,
     96 * kGigabyte, 120, true, "PRO 6000",
     "NVIDIA RTX PRO 6000 Blackwell Workstation Edition data sheet, 2025; fp16 an eighth of its "
     "sparse FP4"},
    {"h100-pcie", "NVIDIA H100 PCIe 80 GB", 51 * kTera, 756 * kTera, 2000 * kGB, 80 * kGigabyte, 90,
     true, "H100 PCIE", "NVIDIA H100 data sheet, 2022"},
    {"h100-nvl", "NVIDIA H100 NVL 94 GB", 60 * kTera, 835 * kTera, 3900 * kGB, 94 * kGigabyte, 90,
     true, "H100 NVL", "NVIDIA H100 data sheet, 2024"},
    {"h100-sxm", "NVIDIA H100 SXM5 80 GB", 67 * kTera, 989 * kTera, 3350 * kGB, 80 * kGigabyte, 90,
     true, "H100", "NVIDIA H100 data sheet, 2024"},
    {"h200-nvl", "NVIDIA H200 NVL 141 GB", 60 * kTera, 835.5 * kTera, 4800 * kGB, 141 * kGigabyte,
     90, true, "H200 NVL", "NVIDIA H200 data sheet, 2024"},
    {"h200-sxm", "NVIDIA H200 SXM 141 GB", 67 * kTera, 989 * kTera, 4800 * kGB, 141 * kGigabyte, 90,
     true, "H200", "NVIDIA H200 data sheet, 2024"},
    {"gh200", "NVIDIA GH200 96 GB", 67 * kTera, 990 * kTera, 4000 * kGB, 96 * kGigabyte, 90, true,
     "GH200", "NVIDIA GH200 data sheet, 2023"},
    {"b200", "NVIDIA B200 SXM 180 GB", 75 * kTera, 2250 * kTera, 8000 * kGB, 180 * kGigabyte, 100,
     true, "B200", "NVIDIA HGX and DGX B200 data sheets, 2025"},
    {"b300", "NVIDIA B300 SXM 288 GB", 75 * kTera, 2250 * kTera, 8000 * kGB, 288 * kGigabyte, 103,
     true, "B300", "NVIDIA HGX B300 and DGX B300 data sheets, 2025"},
    {"gb200", "NVIDIA GB200, one of its GPUs", 80 * kTera, 2500 * kTera, 8000 * kGB,
     186 * kGigabyte, 100, true, "GB200", "NVIDIA GB200 NVL72 data sheet, 2025"},
    {"mi250x", "AMD MI250X, a die of two", 23.95 * kTera, 191.5 * kTera, 1638.4 * kGB,
     64 * kGigabyte, 0, true, "MI250X",
     "AMD Instinct MI250X data sheet, 2022: halves, as ROCm counts each die as a device"},
    {"mi300x", "AMD Instinct MI300X 192 GB", 163.4 * kTera, 1307.4 * kTera, 5300 * kGB,
     192 * kGigabyte, 0, true, "MI300X", "AMD Instinct MI300X data sheet, 2023"},
    {"mi325x", "AMD Instinct MI325X 256 GB", 163.4 * kTera, 1307.4 * kTera, 6000 * kGB,
     256 * kGigabyte, 0, true, "MI325X", "AMD Instinct MI325X data sheet, 2024"},
    {"mi350x", "AMD Instinct MI350X 288 GB", 144.2 * kTera, 2306.9 * kTera, 8000 * kGB,
     288 * kGigabyte, 0, true, "MI350X", "AMD Instinct MI350X data sheet, 2025"},
};

// Returns upper-case words of letters and digits: "A100-SXM4-40GB" has three.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words(1);
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (std::isalnum(byte) != 0) {
      words.back() += static_cast<char>(std::toupper(byte));
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

bool has_words(const std::vector<std::string>& words, std::string_view wanted) {
  return std::ranges::all_of(words_of(wanted), [&](const std::string& word) {
    return std::ranges::find(words, word) != words.end();
  });
}

// Returns the first row with that name; nullptr: there is none.
template <typename Rows, typename Name>
auto row_of(const Rows& rows, std::string_view name, Name in) {
  const auto* row = std::ranges::find(rows, name, in);
  return row == std::end(rows) ? nullptr : row;
}

using Cpu = NcclHints::Cpu;

constexpr KnownPort kNvlink2 = nvlink(150);
constexpr KnownPort kNvlink3 = nvlink(300);
constexpr KnownPort kNvlink4 = nvlink(450);
constexpr KnownPort kNvlink5 = nvlink(900);
constexpr KnownPort kPcie3 = pcie(15.75);  // x16, net of its line code
constexpr KnownPort kPcie4 = pcie(31.5);
constexpr KnownPort kInfinityFabric = nvlink(448);  // seven links of 64 GB/s per direction

using enum Fabric;

constexpr std::string_view kAws = "AWS EC2 accelerated computing instances page, 2025";
constexpr std::string_view kGoogle = "Google Cloud GPU machine types and network pages, 2025";
constexpr std::string_view kAzure = "Azure virtual machine sizes, GPU accelerated, 2025";

// The first node of a device is its usual one.
constexpr KnownNode kNodes[] = {
    {"dgx-1", "NVIDIA DGX-1, 8 V100", "v100-sxm", 8, kNvlink2, port(4, 100, kRdma), true,
     Cpu::kIntel, "NVIDIA DGX-1 data sheet, 2017"},
    {"p3.16xlarge", "AWS, 8 V100", "v100-sxm", 8, kNvlink2, port(1, 25, kTcp), false, Cpu::kIntel,
     kAws},
    {"dgx-2", "NVIDIA DGX-2, 16 V100", "v100-sxm-32gb", 16, kNvlink2, port(8, 100, kRdma), true,
     Cpu::kIntel, "NVIDIA DGX-2 data sheet, 2018"},
    {"p3dn.24xlarge", "AWS, 8 V100", "v100-sxm-32gb", 8, kNvlink2, port(1, 100, kEfa), false,
     Cpu::kIntel, kAws},
    {"nd40rs_v2", "Azure, 8 V100", "v100-sxm-32gb", 8, kNvlink2, port(1, 100, kRdma), true,
     Cpu::kIntel, kAzure},
    {"g4dn.12xlarge", "AWS, 4 T4", "t4", 4, kPcie3, port(1, 50, kTcp), false, Cpu::kIntel, kAws},
    {"dgx-a100", "NVIDIA DGX A100 40 GB, 8 A100", "a100-sxm-40gb", 8, kNvlink3, port(8, 200, kRdma),
     true, Cpu::kAmd, "NVIDIA DGX A100 data sheet, 2020"},
    {"p4d.24xlarge", "AWS, 8 A100", "a100-sxm-40gb", 8, kNvlink3, port(4, 100, kEfa), true,
     Cpu::kIntel, kAws},
    {"a2-highgpu-8g", "Google Cloud, 8 A100", "a100-sxm-40gb", 8, kNvlink3, port(1, 100, kTcp),
     false, Cpu::kIntel, kGoogle},
    {"nd96asr_v4", "Azure, 8 A100", "a100-sxm-40gb", 8, kNvlink3, port(8, 200, kRdma), true,
     Cpu::kAmd, kAzure},
    {"dgx-a100-80gb", "NVIDIA DGX A100 80 GB, 8 A100", "a100-sxm-80gb", 8, kNvlink3,
     port(8, 200, kRdma), true, Cpu::kAmd, "NVIDIA DGX A100 data sheet, 2021"},
    {"p4de.24xlarge", "AWS, 8 A100", "a100-sxm-80gb", 8, kNvlink3, port(4, 100, kEfa), true,
     Cpu::kIntel, kAws},
    {"a2-ultragpu-8g", "Google Cloud, 8 A100", "a100-sxm-80gb", 8, kNvlink3, port(1, 100, kTcp),
     false, Cpu::kIntel, kGoogle},
    {"nd96amsr_a100_v4", "Azure, 8 A100", "a100-sxm-80gb", 8, kNvlink3, port(8, 200, kRdma), true,
     Cpu::kAmd, kAzure},
    {"g5.48xlarge", "AWS, 8 A10G", "a10g", 8, kPcie4, port(1, 100, kTcp), false, Cpu::kAmd, kAws},
    {"g6.48xlarge", "AWS, 8 L4", "l4", 8, kPcie4, port(1, 100, kTcp), false, Cpu::kAmd, kAws},
    {"g2-standard-96", "Google Cloud, 8 L4", "l4", 8, kPcie4, port(1, 100, kTcp), false,
     Cpu::kIntel, kGoogle},
    {"g6e.48xlarge", "AWS, 8 L40S", "l40s", 8, kPcie4, port(4, 100, kEfa), false, Cpu::kAmd, kAws},
    {"workstation-4090", "a workstation, 4 RTX 4090", "rtx-4090", 4, kHostMemory, port(1, 10, kTcp),
     false, Cpu::kAmd,
     "assumed: cards that reach each other through host memory alone, at 5.5 GB/s, 10 "
     "Gbit/s Ethernet on the board"},
    {"dgx-h100", "NVIDIA DGX H100, 8 H100", "h100-sxm", 8, kNvlink4, port(8, 400, kRdma), true,
     Cpu::kIntel, "NVIDIA DGX H100 data sheet, 2023"},
    {"p5.48xlarge", "AWS, 8 H100", "h100-sxm", 8, kNvlink4, port(32, 100, kEfa), true, Cpu::kAmd,
     kAws},
    {"a3-highgpu-8g", "Google Cloud, 8 H100", "h100-sxm", 8, kNvlink4, port(4, 200, kTcpx), true,
     Cpu::kIntel, kGoogle},
    {"a3-megagpu-8g", "Google Cloud, 8 H100", "h100-sxm", 8, kNvlink4, port(8, 200, kTcpx), true,
     Cpu::kIntel, kGoogle},
    {"nd96isr_h100_v5", "Azure, 8 H100", "h100-sxm", 8, kNvlink4, port(8, 400, kRdma), true,
     Cpu::kIntel, kAzure},
    {"nc80adis_h100_v5", "Azure, 2 H100 NVL", "h100-nvl", 2, nvlink(300), port(1, 80, kTcp), false,
     Cpu::kAmd, kAzure},
    {"dgx-h200", "NVIDIA DGX H200, 8 H200", "h200-sxm", 8, kNvlink4, port(8, 400, kRdma), true,
     Cpu::kIntel, "NVIDIA DGX H200 data sheet, 2024"},
    {"p5en.48xlarge", "AWS, 8 H200", "h200-sxm", 8, kNvlink4, port(16, 200, kEfa), true,
     Cpu::kIntel, kAws},
    {"a3-ultragpu-8g", "Google Cloud, 8 H200", "h200-sxm", 8, kNvlink4, port(8, 400, kRdma), true,
     Cpu::kIntel, kGoogle},
    {"nd96isr_h200_v5", "Azure, 8 H200", "h200-sxm", 8, kNvlink4, port(8, 400, kRdma), true,
     Cpu::kIntel, kAzure},
    {"alps-gh200", "CSCS Alps, 4 GH200", "gh200", 4, kNvlink4, port(4, 200, kSlingshot), true,
     Cpu::kOther, "CSCS Alps documentation, 2024"},
    {"dgx-b200", "NVIDIA DGX B200, 8 B200", "b200", 8, kNvlink5, port(8, 400, kRdma), true,
     Cpu::kIntel, "NVIDIA DGX B200 data sheet, 2025"},
    {"p6-b200.48xlarge", "AWS, 8 B200", "b200", 8, kNvlink5, port(8, 400, kEfa), true, Cpu::kIntel,
     kAws},
    {"a4-highgpu-8g", "Google Cloud, 8 B200", "b200", 8, kNvlink5, port(8, 400, kRdma), true,
     Cpu::kIntel, kGoogle},
    {"dgx-b300", "NVIDIA DGX B300, 8 B300", "b300", 8, kNvlink5, port(8, 800, kRdma), true,
     Cpu::kIntel, "NVIDIA DGX B300 data sheet, 2025"},
    {"gb200-nvl72", "NVIDIA GB200 NVL72, 72 GPUs of a rack", "gb200", 72, kNvlink5,
     port(72, 400, kRdma), true, Cpu::kOther, "NVIDIA GB200 NVL72 data sheet, 2025"},
    {"mi300x-platform", "AMD Instinct MI300X platform, 8 MI300X", "mi300x", 8, kInfinityFabric,
     port(8, 400, kRccl), true, Cpu::kAmd,
     "AMD Instinct MI300X platform data sheet, 2023; a 400 Gbit/s NIC a GPU assumed"},
    {"nd96isr_mi300x_v5", "Azure, 8 MI300X", "mi300x", 8, kInfinityFabric, port(8, 400, kRccl),
     true, Cpu::kIntel, kAzure},
    {"mi325x-platform", "AMD Instinct MI325X platform, 8 MI325X", "mi325x", 8, kInfinityFabric,
     port(8, 400, kRccl), true, Cpu::kAmd,
     "AMD Instinct MI325X platform data sheet, 2024; a 400 Gbit/s NIC a GPU assumed"},
    {"mi350x-platform", "AMD Instinct MI350X platform, 8 MI350X", "mi350x", 8, nvlink(537.6),
     port(8, 400, kRccl), true, Cpu::kAmd,
     "AMD Instinct MI350X platform data sheet, 2025, seven links of 76.8 GB/s; a 400 Gbit/s NIC a "
     "GPU assumed"},
    {"frontier", "Frontier or LUMI-G, 4 MI250X of two dies", "mi250x", 8, nvlink(100),
     port(4, 200, kRccl), true, Cpu::kAmd,
     "OLCF Frontier user guide, 2024; of a die's three links of 50 GB/s to other packages a ring "
     "is assumed to take two"},
};

}  // namespace

std::span<const KnownDevice> devices() { return kDevices; }

const KnownDevice* find_device(std::string_view name) {
  if (name.starts_with("NVIDIA ") || name.starts_with("AMD ")) return recognise_device(name);
  return row_of(kDevices, name, &KnownDevice::name);
}

const KnownDevice* recognise_device(std::string_view reported) {
  const std::vector<std::string> reported_words = words_of(reported);
  if (has_words(reported_words, "MIG")) return nullptr;
  const auto* row = std::ranges::find_if(
      kDevices, [&](const KnownDevice& device) { return has_words(reported_words, device.words); });
  return row == std::end(kDevices) ? nullptr : row;
}

bool contradicts(std::string_view reported, const KnownDevice& device) {
  const KnownDevice* other = recognise_device(reported);
  return other != nullptr && !has_words(words_of(device.words), other->words);
}

KnownPort pcie_of(int compute_capability) {
  constexpr int kAmpere = 80, kHopper = 90;
  constexpr double kFifth = 63;
  return compute_capability < kAmpere   ? kPcie3
         : compute_capability < kHopper ? kPcie4
                                        : pcie(kFifth);
}

double reached_half_flops(int compute_capability) {
  constexpr int kHopper = 90;
  constexpr double kAmpere = 0.78, kLater = 0.66;
  return compute_capability > 0 && compute_capability < kHopper ? kAmpere : kLater;
}

std::span<const KnownNode> nodes() { return kNodes; }

const KnownNode* find_node(std::string_view name) { return row_of(kNodes, name, &KnownNode::name); }

const KnownNode* usual_node_of(const KnownDevice& device) {
  return row_of(kNodes, device.name, &KnownNode::device);
}

const KnownDevice& device_of(const KnownNode& node) {
  const KnownDevice* device = find_device(node.device);
  assert(device != nullptr && "a node's device is a row of the table");
  return *device;
}

}  // namespace syncline::hardware
