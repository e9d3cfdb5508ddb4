#include "core/tune/guides.h"

#include <cassert>
#include <cmath>

namespace syncline::tune {

std::vector<GuideFactors> guide_factors(const ModelDoubt& doubt) {
  assert(doubt.factor > 1 && doubt.steps >= 1 && "an uncertain model may be off");
  constexpr int kDeviations = 2;
  std::vector<GuideFactors> list;
  const int reach = kDeviations * doubt.steps;
  for (int l = -reach; l <= reach; ++l) {
    for (int t = -reach; t <= reach; ++t) {
      const double latency = static_cast<double>(l) / doubt.steps;
      const double transfer = static_cast<double>(t) / doubt.steps;
      list.push_back({std::pow(doubt.factor, latency), std::pow(doubt.factor, transfer),
                      -0.5 * (latency * latency + transfer * transfer)});
    }
  }
  return list;
}

Guides price_guides(const std::vector<GuideFactors>& factors, std::size_t candidates,
                    const std::function<Seconds(std::size_t, std::size_t)>& price) {
  Guides guides;
  guides.log_weights.resize(static_cast<Eigen::Index>(factors.size()));
  guides.means.resize(guides.log_weights.size(), static_cast<Eigen::Index>(candidates));
  for (std::size_t g = 0; g < factors.size(); ++g) {
    const auto row = static_cast<Eigen::Index>(g);
    guides.log_weights(row) = factors[g].log_weight;
    for (std::size_t c = 0; c < candidates; ++c) {
      guides.means(row, static_cast<Eigen::Index>(c)) = std::log(price(c, g));
    }
  }
  return guides;
}

}  // namespace syncline::tune
