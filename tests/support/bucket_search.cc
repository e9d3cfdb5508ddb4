#include "tests/support/bucket_search.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>
#include <set>

#include "studies/tune/thresholds.h"

namespace syncline::test {
namespace {

AffineCost scaled(const AffineCost& model, const tune::MemberFactors& factors) {
  return {model.latency * factors.latency, model.seconds_per_byte * factors.transfer};
}

double last_bytes(const FusionProblem& gradients, const std::vector<std::size_t>& ends) {
  const std::size_t first = ends.size() < 2 ? 0 : ends[ends.size() - 2] + 1;
  const auto from = gradients.bytes.begin() + static_cast<std::ptrdiff_t>(first);
  return std::accumulate(from, gradients.bytes.end(), 0.0);
}

std::vector<std::size_t> ends_below(const std::vector<double>& bytes, double limit) {
  std::vector<std::size_t> ends;
  double held = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (held > 0 && held + bytes[i] > limit) {
      ends.push_back(i - 1);
      held = 0;
    }
    held += bytes[i];
  }
  ends.push_back(bytes.size() - 1);
  return ends;
}

// Partitions that size limits make, a bucket closing before its limit would be exceeded: `count`
// limits from the smallest gradient to all of them, evenly by logarithm. From many buckets to one,
// without repeats. A sample of thresholds.h's, for searches that need a few of every size.
std::vector<std::vector<std::size_t>> sampled_thresholds(const FusionProblem& gradients,
                                                         int count) {
  assert(count >= 2 && "from the smallest gradient to all of them");
  const auto& bytes = gradients.bytes;
  const double least = std::max(1.0, *std::min_element(bytes.begin(), bytes.end()));
  const double all = std::accumulate(bytes.begin(), bytes.end(), 0.0);
  std::vector<std::vector<std::size_t>> list;
  for (int k = 0; k < count; ++k) {
    const double share = static_cast<double>(k) / static_cast<double>(count - 1);
    // Half a byte of slack: the last limit is all gradients, whatever pow rounds to.
    auto ends = ends_below(bytes, least * std::pow(all / least, share) + 0.5);
    if (list.empty() || list.back() != ends) list.push_back(std::move(ends));
  }
  return list;
}

}  // namespace

tune::SearchProblem bucket_problem(const StepTrace& trace, const AffineCost& model,
                                   int thresholds) {
  const auto factors = tune::member_factors(2);
  std::set<std::vector<std::size_t>> distinct;
  for (const auto& member : factors) {
    distinct.insert(best_fusion(trace.gradients, scaled(model, member)).ends);
  }
  for (auto& ends : sampled_thresholds(trace.gradients, thresholds)) {
    distinct.insert(std::move(ends));
  }
  const std::vector<std::vector<std::size_t>> partitions(distinct.begin(), distinct.end());

  tune::SearchProblem problem;
  problem.categorical = {false, false};
  for (const auto& ends : partitions) {
    tune::Candidate candidate;
    candidate.strategy.fusion = tune::by_ends(ends);
    const double last = last_bytes(trace.gradients, ends);
    candidate.at = {std::log(static_cast<double>(ends.size())), std::log(last)};
    candidate.name = std::to_string(ends.size()) + " buckets, the last of " +
                     std::to_string(static_cast<Bytes>(last)) + " bytes";
    candidate.strategy.name = candidate.name;
    problem.candidates.push_back(std::move(candidate));
  }
  problem.ensemble = tune::evaluate_ensemble(
      factors, problem.candidates.size(), [&](std::size_t c, std::size_t g) {
        return step_time(trace, partitions[c], scaled(model, factors[g]));
      });
  return problem;
}

Seconds step_time(const StepTrace& trace, const tune::Candidate& candidate,
                  const AffineCost& cost) {
  const auto& ends = candidate.strategy.fusion.ends;
  return step_time(trace, std::vector<std::size_t>(ends.begin(), ends.end()), cost);
}

}  // namespace syncline::test
