#include "core/tune/ensemble.h"

#include <cassert>
#include <cmath>

namespace syncline::tune {

std::vector<MemberFactors> member_factors(const ModelUncertainty& uncertainty) {
  assert(uncertainty.factor > 1 && uncertainty.steps >= 1 && "an uncertain model may be off");
  constexpr int kDeviations = 2;
  std::vector<MemberFactors> list;
  const int reach = kDeviations * uncertainty.steps;
  for (int l = -reach; l <= reach; ++l) {
    for (int t = -reach; t <= reach; ++t) {
      const double latency = static_cast<double>(l) / uncertainty.steps;
      const double transfer = static_cast<double>(t) / uncertainty.steps;
      list.push_back({std::pow(uncertainty.factor, latency), std::pow(uncertainty.factor, transfer),
                      -0.5 * (latency * latency + transfer * transfer)});
    }
  }
  return list;
}

Ensemble evaluate_ensemble(const std::vector<MemberFactors>& factors, std::size_t candidates,
                           const std::function<Seconds(std::size_t, std::size_t)>& cost) {
  Ensemble ensemble;
  ensemble.log_weights.resize(static_cast<Eigen::Index>(factors.size()));
  ensemble.means.resize(ensemble.log_weights.size(), static_cast<Eigen::Index>(candidates));
  for (std::size_t g = 0; g < factors.size(); ++g) {
    const auto row = static_cast<Eigen::Index>(g);
    ensemble.log_weights(row) = factors[g].log_weight;
    for (std::size_t c = 0; c < candidates; ++c) {
      ensemble.means(row, static_cast<Eigen::Index>(c)) = std::log(cost(c, g));
    }
  }
  return ensemble;
}

}  // namespace syncline::tune
