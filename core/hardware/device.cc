#include "core/hardware/device.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <vector>

namespace syncline::hardware {
namespace {

constexpr double kTera = 1e12;
constexpr BytesPerSecond kGB = kGigabytePerSecond;
constexpr Bytes kGigabyte = 1'000'000'000;

// Dense rates; where a data sheet prints those with sparsity alone, half of them. Where a device is
// recognised by fewer words than another, it stands behind that one.
constexpr std::array kDevices{
    KnownDevice{"p100-sxm", "NVIDIA P100 SXM2 16 GB", 10.6 * kTera, 21.2 * kTera, 732 * kGB,
                16 * kGigabyte, 60, false, "P100", "NVIDIA Tesla P100 data sheet, 2016"},
    KnownDevice{"v100-pcie", "NVIDIA V100 PCIe", 14 * kTera, 112 * kTera, 900 * kGB, 16 * kGigabyte,
                70, false, "V100 PCIE", "NVIDIA V100 data sheet, 2020"},
    KnownDevice{"v100-sxm-32gb", "NVIDIA V100 SXM2 32 GB", 15.7 * kTera, 125 * kTera, 900 * kGB,
                32 * kGigabyte, 70, false, "V100 32GB", "NVIDIA V100 data sheet, 2020"},
    KnownDevice{"v100-sxm", "NVIDIA V100 SXM2 16 GB", 15.7 * kTera, 125 * kTera, 900 * kGB,
                16 * kGigabyte, 70, false, "V100", "NVIDIA V100 data sheet, 2020"},
    KnownDevice{"t4", "NVIDIA T4", 8.1 * kTera, 65 * kTera, 300 * kGB, 16 * kGigabyte, 75, false,
                "T4", "NVIDIA T4 data sheet, 2019"},
    KnownDevice{"rtx-2080-ti", "NVIDIA GeForce RTX 2080 Ti", 13.4 * kTera, 53.8 * kTera, 616 * kGB,
                11 * kGigabyte, 75, false, "2080 TI",
                "NVIDIA Turing architecture whitepaper, 2018, reference card"},
    KnownDevice{"a100-pcie-80gb", "NVIDIA A100 PCIe 80 GB", 19.5 * kTera, 312 * kTera, 1935 * kGB,
                80 * kGigabyte, 80, true, "A100 80GB PCIE", "NVIDIA A100 data sheet, 2022"},
    KnownDevice{"a100-sxm-80gb", "NVIDIA A100 SXM4 80 GB", 19.5 * kTera, 312 * kTera, 2039 * kGB,
                80 * kGigabyte, 80, true, "A100 80GB", "NVIDIA A100 data sheet, 2022"},
    KnownDevice{"a100-pcie-40gb", "NVIDIA A100 PCIe 40 GB", 19.5 * kTera, 312 * kTera, 1555 * kGB,
                40 * kGigabyte, 80, true, "A100 PCIE", "NVIDIA A100 data sheet, 2020"},
    KnownDevice{"a100-sxm-40gb", "NVIDIA A100 SXM4 40 GB", 19.5 * kTera, 312 * kTera, 1555 * kGB,
                40 * kGigabyte, 80, true, "A100", "NVIDIA A100 data sheet, 2020"},
    KnownDevice{"a10", "NVIDIA A10", 31.2 * kTera, 125 * kTera, 600 * kGB, 24 * kGigabyte, 86, true,
                "A10", "NVIDIA A10 data sheet, 2021"},
    KnownDevice{"a10g", "NVIDIA A10G", 35 * kTera, 70 * kTera, 600 * kGB, 24 * kGigabyte, 86, true,
                "A10G", "NVIDIA A10G data sheet, 2021"},
    KnownDevice{"rtx-3090", "NVIDIA GeForce RTX 3090", 35.6 * kTera, 71 * kTera, 936 * kGB,
                24 * kGigabyte, 86, true, "3090", "NVIDIA Ampere GA102 whitepaper, 2020"},
    KnownDevice{"l4", "NVIDIA L4", 30.3 * kTera, 121 * kTera, 300 * kGB, 24 * kGigabyte, 89, true,
                "L4", "NVIDIA L4 data sheet, 2023"},
    KnownDevice{"l40s", "NVIDIA L40S", 91.6 * kTera, 362 * kTera, 864 * kGB, 48 * kGigabyte, 89,
                true, "L40S", "NVIDIA L40S data sheet, 2023"},
    KnownDevice{"rtx-4090", "NVIDIA GeForce RTX 4090", 82.6 * kTera, 165.2 * kTera, 1008 * kGB,
                24 * kGigabyte, 89, true, "4090", "NVIDIA Ada architecture whitepaper, 2022"},
    KnownDevice{"h100-pcie", "NVIDIA H100 PCIe 80 GB", 51 * kTera, 756 * kTera, 2000 * kGB,
                80 * kGigabyte, 90, true, "H100 PCIE", "NVIDIA H100 data sheet, 2022"},
    KnownDevice{"h100-nvl", "NVIDIA H100 NVL 94 GB", 60 * kTera, 835 * kTera, 3900 * kGB,
                94 * kGigabyte, 90, true, "H100 NVL", "NVIDIA H100 data sheet, 2024"},
    KnownDevice{"h100-sxm", "NVIDIA H100 SXM5 80 GB", 67 * kTera, 989 * kTera, 3350 * kGB,
                80 * kGigabyte, 90, true, "H100", "NVIDIA H100 data sheet, 2024"},
    KnownDevice{"h200-sxm", "NVIDIA H200 SXM 141 GB", 67 * kTera, 989 * kTera, 4800 * kGB,
                141 * kGigabyte, 90, true, "H200", "NVIDIA H200 data sheet, 2024"},
    KnownDevice{"gh200", "NVIDIA GH200 96 GB", 67 * kTera, 990 * kTera, 4000 * kGB, 96 * kGigabyte,
                90, true, "GH200", "NVIDIA GH200 data sheet, 2023"},
    KnownDevice{"b200", "NVIDIA B200 SXM 180 GB", 75 * kTera, 2250 * kTera, 8000 * kGB,
                180 * kGigabyte, 100, true, "B200", "NVIDIA HGX and DGX B200 data sheets, 2025"},
    KnownDevice{"gb200", "NVIDIA GB200, one of its GPUs", 80 * kTera, 2500 * kTera, 8000 * kGB,
                186 * kGigabyte, 100, true, "GB200", "NVIDIA GB200 NVL72 data sheet, 2025"},
    KnownDevice{"mi300x", "AMD Instinct MI300X 192 GB", 163.4 * kTera, 1307.4 * kTera, 5300 * kGB,
                192 * kGigabyte, 0, true, "MI300X", "AMD Instinct MI300X data sheet, 2023"},
};

// Upper-case words of letters and digits: "A100-SXM4-40GB" has three.
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

bool contains(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

std::span<const KnownDevice> devices() { return kDevices; }

const KnownDevice* find_device(std::string_view name) {
  const auto* row = std::find_if(kDevices.begin(), kDevices.end(),
                                 [&](const auto& device) { return device.name == name; });
  return row == kDevices.end() ? nullptr : row;
}

const KnownDevice* recognise_device(std::string_view reported) {
  const std::vector<std::string> said = words_of(reported);
  if (contains(said, "MIG")) return nullptr;
  for (const KnownDevice& device : kDevices) {
    const auto wanted = words_of(device.words);
    if (std::all_of(wanted.begin(), wanted.end(),
                    [&](const std::string& word) { return contains(said, word); })) {
      return &device;
    }
  }
  return nullptr;
}

bool contradicts(std::string_view reported, const KnownDevice& device) {
  const KnownDevice* other = recognise_device(reported);
  if (other == nullptr || other == &device) return false;
  const auto own = words_of(device.words);
  const auto said = words_of(other->words);
  return !std::all_of(said.begin(), said.end(),
                      [&](const std::string& word) { return contains(own, word); });
}

}  // namespace syncline::hardware
