#include "core/input/presets.h"

#include <array>

namespace syncline::input {
namespace {

struct Preset {
  std::string_view name;
  void (*apply)(Strategy&);
};

// Merges gradients by ready times and prices.
void apply_mg_wfbp(Strategy& strategy) { strategy.fusion.rule = Fusion::Rule::kMgWfbp; }

// DeAR's defaults: all-reduce in two halves around the step's end, buckets of 25 MiB formed first
// layer first, whole layers.
void apply_dear(Strategy& strategy) {
  strategy.fusion.rule = Fusion::Rule::kSize;
  strategy.fusion.size = 25 * kMiB;
  strategy.fusion.close = Fusion::Close::kBefore;
  strategy.fusion.by_layer = true;
  strategy.fusion.order = Fusion::Order::kForward;
  strategy.exchange = Strategy::Exchange::kDecoupled;
  strategy.cross_step = true;
}

// Parts of a million fp32 parameters, first layers first, four million under way
// (BYTESCHEDULER_PARTITION and _CREDIT).
void apply_bytescheduler(Strategy& strategy) {
  constexpr Bytes kMillionParameters = 4'000'000;
  strategy.partition = kMillionParameters;
  strategy.credit = 4 * kMillionParameters;
  strategy.priority = Strategy::Priority::kLayer;
  strategy.cross_step = true;
}

constexpr std::array kPresets{Preset{"mg_wfbp", apply_mg_wfbp}, Preset{"dear", apply_dear},
                              Preset{"bytescheduler", apply_bytescheduler}};

}  // namespace

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const auto& preset : kPresets) names.emplace_back(preset.name);
  return names;
}

Strategy preset_of(std::string_view name) {
  Strategy strategy;
  for (const auto& preset : kPresets) {
    if (preset.name == name) preset.apply(strategy);
  }
  return strategy;
}

}  // namespace syncline::input
