#include "core/measure/bottleneck.h"

#include <algorithm>

#include "core/run/stragglers.h"

namespace syncline::measure {

std::string_view Bottleneck::what() const {
  constexpr double kLittle = 0.1;
  if (stragglers + handling + communication() < kLittle * step) return "computation";
  if (handling > std::max(stragglers, communication())) return "handling gradients";
  if (stragglers > communication()) return "stragglers";
  return start_up > transfer ? "latency" : "bandwidth";
}

Bottleneck bottleneck_of(const Priced& priced, const Cluster& cluster,
                         collective::PriceBook& book) {
  const plan::Plan& plan = priced.plan;
  Bottleneck bottleneck;
  bottleneck.step = priced.metrics.step_time;
  bottleneck.compute =
      priced.metrics.compute / run::expected_slowest(cluster.jitter, plan.ranks, plan.steps);
  bottleneck.stragglers = priced.metrics.compute - bottleneck.compute;
  bottleneck.overhead =
      std::min(plan::ahead_of_forward(plan) / plan.steps, priced.metrics.handling);
  bottleneck.handling = priced.metrics.handling - bottleneck.overhead;

  Seconds all = 0, transfer = 0;
  for (const auto& op : plan.ops) {
    const auto* collective = std::get_if<collective::Collective>(&op.work);
    if (collective == nullptr) continue;
    all += book.time(*collective);
    transfer += book.price(*collective).seconds_per_byte * static_cast<double>(collective->bytes());
  }
  bottleneck.start_up_share = all > 0 ? (all - transfer) / all : 0;
  bottleneck.start_up = priced.metrics.exposed * bottleneck.start_up_share;
  bottleneck.transfer = priced.metrics.exposed - bottleneck.start_up;
  return bottleneck;
}

}  // namespace syncline::measure
