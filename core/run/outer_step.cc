#include "core/run/outer_step.h"

namespace syncline::run {

void OuterStep::make(int tensor, std::vector<float>& values) const {
  if (!outer_.any()) return;
  const auto state = states_.find(tensor);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float start = state == states_.end() ? 0.0F : state->second.first[i];
    values[i] = start - values[i];
  }
}

void OuterStep::apply(int tensor, const std::vector<float>& own, std::vector<float>& values) {
  for (float& value : values) value /= static_cast<float>(replicas_);
  const auto mix = static_cast<float>(outer_.mix);
  if (outer_.any()) {
    auto& [start, kept] = states_[tensor];
    start.resize(values.size(), 0.0F);
    const bool nesterov = outer_.optimizer == Outer::Optimizer::kNesterov;
    if (nesterov) kept.resize(values.size(), 0.0F);
    const auto rate = static_cast<float>(outer_.rate);
    const auto momentum = static_cast<float>(outer_.momentum);
    for (std::size_t i = 0; i < values.size(); ++i) {
      float step = values[i];
      if (nesterov) {
        kept[i] = momentum * kept[i] + step;
        step += momentum * kept[i];
      }
      start[i] -= rate * step;
      values[i] = start[i];
    }
  }
  if (mix <= 0) return;
  for (std::size_t i = 0; i < values.size(); ++i) values[i] += mix * (own[i] - values[i]);
}

}  // namespace syncline::run
