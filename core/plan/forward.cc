#include "core/plan/step_plan.h"

#include "core/plan/fusion.h"

namespace syncline::plan {

std::vector<ForwardLayer> forward_layers(const Workload& workload) {
  const auto times = forward_times(workload);
  std::vector<ForwardLayer> layers;
  std::string open;
  for (int i = static_cast<int>(workload.tensors.size()) - 1; i >= 0; --i) {
    const auto place = static_cast<std::size_t>(i);
    std::string name = layer_of(workload.tensors[place].name, Fusion::LayerKey::kLastDot);
    if (layers.empty() || name != open) layers.push_back({i, i, 0});
    open = std::move(name);
    layers.back().first = i;
    layers.back().seconds += times[place];
  }
  return layers;
}

}  // namespace syncline::plan
