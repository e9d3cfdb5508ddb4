#include "core/collective/library.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <utility>

#include "core/algorithm.h"
#include "core/collective/nccl.h"

namespace syncline::collective {
namespace {

// Compute capabilities by device name; the longer name first.
constexpr std::pair<std::string_view, int> kCapabilities[] = {
    {"GB200", 100}, {"GB300", 103}, {"B200", 100}, {"B300", 103},     {"5090", 120},
    {"GH200", 90},  {"H100", 90},   {"H200", 90},  {"H800", 90},      {"H20", 90},
    {"L40", 89},    {"L4", 89},     {"4090", 89},  {"A6000", 86},     {"A100", 80},
    {"A800", 80},   {"A10", 86},    {"A40", 86},   {"PRO 6000", 120}, {"PRO-6000", 120},
    {"3090", 86},   {"A30", 80},    {"T4", 75},    {"2080", 75},      {"V100", 70},
    {"P100", 60},   {"P40", 61},    {"1080", 61},
};

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

// True if the text contains the name as a word: "8xA100" and "RTX 2080Ti" do, "port4" does not.
bool names(std::string_view text, std::string_view word) {
  for (auto at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const char before = at > 0 ? text[at - 1] : ' ';
    const char after = at + word.size() < text.size() ? text[at + word.size()] : ' ';
    const bool begins = before == 'X' || (!is_digit(before) && !is_letter(before));
    if (begins && !is_digit(after)) return true;
  }
  return false;
}

// Payloads of the tables, as powers of two: 8 KiB, 512 KiB, 23 MiB, 1 GiB.
constexpr std::array<double, 4> kOctaves = {13, 19, 24.5, 30};
using Values = std::array<double, 4>;

// Interpolates linearly over the logarithm of the payload, so the result is continuous.
double between(const Values& values, double bytes) {
  const double octave = std::clamp(std::log2(bytes), kOctaves.front(), kOctaves.back());
  const auto above = std::upper_bound(kOctaves.begin() + 1, kOctaves.end() - 1, octave);
  const auto high = static_cast<std::size_t>(above - kOctaves.begin());
  const double share = (octave - kOctaves[high - 1]) / (kOctaves[high] - kOctaves[high - 1]);
  return values[high - 1] + share * (values[high] - values[high - 1]);
}

struct Row {
  Values bias;
  Values spread;
};

constexpr Row kNvlink = {{-0.57, -0.03, 0.26, 0.24}, {0.60, 0.63, 0.26, 0.18}};
constexpr Row kPcie = {{-0.21, 0.56, 0.55, 0.52}, {0.74, 0.84, 0.45, 0.40}};
// One GPU per node, or nodes with GPUs joined by PCIe, reach less of their NICs than nodes with
// NVLink.
constexpr Row kRdmaOfNvlink = {{-0.16, 0.18, 0.13, 0.06}, {0.54, 0.56, 0.26, 0.34}};
constexpr Row kUnknown = {{0.15, 0.39, 0.48, 0.15}, {0.48, 0.78, 0.51, 0.34}};
constexpr std::pair<Fabric, Row> kAcross[] = {
    {Fabric::kRdma, {{-0.08, 0.34, 0.49, 0.48}, {0.52, 0.58, 0.43, 0.38}}},
    {Fabric::kEfa, {{0.29, 0.81, 0.61, 0.29}, {0.36, 0.54, 0.48, 0.36}}},
    {Fabric::kSlingshot, {{-0.05, 1.09, 0.42, 0.26}, {0.61, 0.62, 0.37, 0.27}}},
    {Fabric::kTcp, {{-0.03, 0.44, 0.37, 0.09}, {0.47, 0.72, 0.47, 0.24}}},
    {Fabric::kTcpx, {{0.17, 1.01, 0.84, 0.27}, {0.36, 1.17, 0.47, 0.44}}},
    // Without own logs. A survey of MI300X over two nodes reports 219 us up to 128 KiB (the model:
    // 35), and 4.2 times the model in the median of all sizes; large payloads as on any network.
    {Fabric::kRccl, {{1.83, 1.43, 0.52, 0.15}, {0.50, 0.77, 0.46, 0.32}}},
};

const Row& row_of(const Path& path) {
  if (!path.across) return path.nvlink ? kNvlink : kPcie;
  if (path.fabric == Fabric::kRdma && path.nvlink) return kRdmaOfNvlink;
  const auto known = std::ranges::find(kAcross, path.fabric, &std::pair<Fabric, Row>::first);
  return known == std::end(kAcross) ? kUnknown : known->second;
}

}  // namespace

int named_capability(const Cluster& cluster) {
  if (cluster.device.compute_capability > 0) return cluster.device.compute_capability;
  std::string text;
  for (const char c : cluster.device.name) {
    text += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  for (const auto& [word, capability] : kCapabilities) {
    if (names(text, word)) return capability;
  }
  return 0;
}

Library likely_library(const Cluster& cluster) {
  const bool amd = cluster.fabric == Fabric::kRccl;  // RCCL is a fork of NCCL
  const bool known = cluster.nccl.compute_capability > 0 || named_capability(cluster) > 0;
  return known || amd ? Library::kNccl : Library::kLinks;
}

std::string_view library_algorithm(const Cluster& cluster) {
  return cluster.library == Library::kNccl ? kNcclName : std::string_view("ring");
}

std::vector<std::string> library_algorithms(const Cluster& cluster) {
  if (cluster.library == Library::kLinks) return algorithm_choices();
  if (cluster.library == Library::kGloo) return {"ring"};
  return {std::string(kNcclName), "ring", "double_binary_tree"};
}

std::string library_words(const Cluster& cluster) {
  if (cluster.library == Library::kLinks) return "collectives are rings on the links as given";
  const bool nccl = cluster.library == Library::kNccl;
  const std::string runs = nccl ? "NCCL runs the collectives" : "collectives are rings over Gloo";
  if (cluster.cost_model) return runs + ", as calibrated here";
  return runs + (nccl ? ", timed by its own model" : ", on the links");
}

Prior nccl_prior(const Path& path, double bytes) {
  const Row& row = row_of(path);
  return {between(row.bias, bytes), between(row.spread, bytes)};
}

// The figures are of a ring on the links, from the same logs. Fitting the links explains most.
Prior links_prior(double bytes) {
  constexpr Row kLinks = {{-0.2, 0.7, 0.5, 0.5}, {0.67, 0.71, 0.42, 0.42}};
  return {between(kLinks.bias, bytes), between(kLinks.spread, bytes)};
}

}  // namespace syncline::collective
