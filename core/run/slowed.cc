#include "core/run/slowed.h"

#include <algorithm>

namespace syncline::run {

bool slows(const plan::Plan& plan) {
  return std::any_of(plan.ops.begin(), plan.ops.end(), [](const plan::Op& op) {
    return std::holds_alternative<plan::Slowed>(op.work);
  });
}

plan::Plan with_slowed(plan::Plan plan, collective::PriceBook& book) {
  std::vector<Seconds> exchanged(plan.buckets.size(), 0);
  for (const auto& op : plan.ops) {
    const auto* collective = std::get_if<collective::Collective>(&op.work);
    if (collective == nullptr) continue;
    exchanged[static_cast<std::size_t>(collective->bucket)] += book.time(*collective);
  }
  for (auto& op : plan.ops) {
    auto* slowed = std::get_if<plan::Slowed>(&op.work);
    if (slowed == nullptr) continue;
    const Seconds beside = exchanged[static_cast<std::size_t>(slowed->bucket)];
    slowed->seconds = std::min(slowed->share * beside, slowed->most);
  }
  return plan;
}

}  // namespace syncline::run
