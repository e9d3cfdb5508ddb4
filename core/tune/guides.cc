#include "core/tune/guides.h"

#include <cassert>
#include <cmath>
#include <numeric>
#include <set>

#include "core/tune/rules.h"

namespace syncline {
namespace {

AffineCost scaled(const AffineCost& model, const GuideFactors& factors) {
  return {model.latency * factors.latency, model.seconds_per_byte * factors.transfer};
}

double last_bytes(const FusionProblem& gradients, const std::vector<std::size_t>& ends) {
  const std::size_t first = ends.size() < 2 ? 0 : ends[ends.size() - 2] + 1;
  const auto from = gradients.bytes.begin() + static_cast<std::ptrdiff_t>(first);
  return std::accumulate(from, gradients.bytes.end(), 0.0);
}

}  // namespace

std::vector<GuideFactors> guide_factors(const ModelDoubt& doubt) {
  assert(doubt.factor > 1 && doubt.steps >= 1 && "a model in doubt may be off");
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

SearchProblem bucket_problem(const StepTrace& trace, const AffineCost& model,
                             const ModelDoubt& doubt, int thresholds, const Strategy& base) {
  const auto factors = guide_factors(doubt);
  std::set<std::vector<std::size_t>> distinct;
  for (const auto& guide : factors) {
    distinct.insert(best_fusion(trace.gradients, scaled(model, guide)).ends);
  }
  for (auto& ends : sampled_thresholds(trace.gradients, thresholds)) {
    distinct.insert(std::move(ends));
  }
  const std::vector<std::vector<std::size_t>> partitions(distinct.begin(), distinct.end());

  SearchProblem problem;
  problem.axes = {{"buckets", SearchAxis::Scale::kLogarithmic},
                  {"last bucket's bytes", SearchAxis::Scale::kLogarithmic}};
  for (const auto& ends : partitions) {
    Candidate candidate;
    candidate.strategy = base;
    candidate.strategy.fusion = by_ends(ends);
    candidate.at = {static_cast<double>(ends.size()), last_bytes(trace.gradients, ends)};
    candidate.name = std::to_string(ends.size()) + " buckets, the last of " +
                     std::to_string(static_cast<Bytes>(candidate.at[1])) + " bytes";
    candidate.strategy.name = candidate.name;
    problem.candidates.push_back(std::move(candidate));
  }
  problem.guides =
      price_guides(factors, problem.candidates.size(), [&](std::size_t c, std::size_t g) {
        return step_time(trace, partitions[c], scaled(model, factors[g]));
      });
  return problem;
}

}  // namespace syncline
