#include "reports/explanation.h"

#include <algorithm>

#include "core/plan/planner.h"
#include "reports/format.h"

namespace syncline::reports {

std::string traffic_sentence(const plan::Plan& plan, const measure::Metrics& metrics) {
  double least = 0, most = 0;
  std::size_t encoded = 0;
  for (std::size_t b = 0; b < plan.buckets.size(); ++b) {
    const auto bytes = static_cast<double>(plan.buckets[b].bytes);
    least = b == 0 ? bytes : std::min(least, bytes);
    most = std::max(most, bytes);
    encoded += plan.buckets[b].codec != nullptr;
  }
  std::string text =
      collectives_text(metrics.collectives) + ": " + plural(plan.buckets.size(), "bucket");
  if (plan.steps > 1) text += " every " + std::to_string(plan.steps) + " steps";
  // A training of several phases: the buckets are those of its first.
  if (measure::collectives_per_step(plan) != metrics.collectives) text += " at first";
  text += plan.buckets.size() == 1 ? ", of " + bytes_text(most)
                                   : ", the smallest of " + bytes_text(least) +
                                         " and the largest of " + bytes_text(most);
  if (encoded > 0) text += "; " + std::to_string(encoded) + " of them compressed";
  return text;
}

std::string overlap_sentence(const plan::Plan& plan, const measure::Metrics& metrics) {
  if (plan.streams == 1) return "everything runs on one stream: no communication is hidden";
  const Seconds hidden = std::max(0.0, metrics.communication - metrics.exposed);
  const double share = metrics.communication > 0 ? 100 * hidden / metrics.communication : 100;
  return plural(static_cast<std::size_t>(plan::communication_streams(plan)),
                "communication stream") +
         "; " + share_text(share) + " of " + seconds_text(metrics.communication) +
         " of communication is hidden by computation, " + seconds_text(metrics.exposed) +
         " per step is exposed";
}

std::string bottleneck_sentence(const measure::Bottleneck& bottleneck) {
  const auto share = [&](Seconds part) { return share_text(100 * part / bottleneck.step); };
  const std::string_view what = bottleneck.what();
  std::string text = std::string(what) + ": ";
  if (what == "stragglers") {
    return text + share(bottleneck.stragglers) + " of each step is waiting for slower ranks";
  }
  if (what == "handling gradients") {
    return text + share(bottleneck.handling) +
           " of each step is copying or encoding them, or waiting for the host";
  }
  if (what == "computation") {
    const bool little = bottleneck.communication() < 0.01 * bottleneck.step;
    return text + "communication costs " +
           (little ? "less than 1 %" : share(bottleneck.communication()) + " of each step");
  }
  return text + share_text(100 * bottleneck.start_up_share) +
         " of the collectives' time is latency";
}

}  // namespace syncline::reports
