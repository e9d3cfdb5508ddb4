#include "core/collective/library.h"

#include <cctype>
#include <utility>

#include "core/collective/algorithm.h"
#include "core/collective/nccl.h"

namespace syncline::collective {
namespace {

// Compute capabilities by what a device is called; the longer name first.
constexpr std::pair<std::string_view, int> kCapabilities[] = {
    {"GB200", 100}, {"GB300", 103}, {"B200", 100}, {"B300", 103}, {"5090", 120}, {"GH200", 90},
    {"H100", 90},   {"H200", 90},   {"H800", 90},  {"H20", 90},   {"L40", 89},   {"L4", 89},
    {"4090", 89},   {"A6000", 86},  {"A100", 80},  {"A800", 80},  {"A10", 86},   {"A40", 86},
    {"3090", 86},   {"A30", 80},    {"T4", 75},    {"2080", 75},  {"V100", 70},  {"P100", 60},
    {"P40", 61},    {"1080", 61},
};

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

// Whether the name stands in the text as a word: "8xA100" and "RTX 2080Ti" have one, "port4" none.
bool names(std::string_view text, std::string_view word) {
  for (auto at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const char before = at > 0 ? text[at - 1] : ' ';
    const char after = at + word.size() < text.size() ? text[at + word.size()] : ' ';
    const bool begins = before == 'X' || (!is_digit(before) && !is_letter(before));
    if (begins && !is_digit(after)) return true;
  }
  return false;
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
  const bool amd = cluster.fabric == Fabric::kRccl;  // whose library is a fork of it
  const bool known = cluster.nccl.compute_capability > 0 || named_capability(cluster) > 0;
  return known || amd ? Library::kNccl : Library::kLinks;
}

std::string_view library_algorithm(const Cluster& cluster) {
  return cluster.library == Library::kNccl ? kNcclName : std::string_view("ring");
}

std::vector<std::string> library_algorithms(const Cluster& cluster) {
  switch (cluster.library) {
    case Library::kNccl:
      return {std::string(kNcclName), "ring", "double_binary_tree"};
    case Library::kGloo:
      return {"ring"};
    case Library::kLinks:
      break;
  }
  return algorithm_choices();
}

std::string library_words(const Cluster& cluster) {
  const bool measured = static_cast<bool>(cluster.cost_model);
  switch (cluster.library) {
    case Library::kNccl:
      return measured ? "NCCL, as calibrated here" : "NCCL, by its own model";
    case Library::kGloo:
      return measured ? "rings over Gloo, as calibrated here" : "rings over Gloo, on the links";
    case Library::kLinks:
      break;
  }
  return "rings on the links as given";
}

}  // namespace syncline::collective
