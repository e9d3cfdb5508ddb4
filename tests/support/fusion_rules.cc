#include "tests/support/fusion_rules.h"

#include <cassert>

#include "core/plan/fusion.h"
#include "studies/tune/thresholds.h"

namespace syncline::test {

const std::vector<NamedRule>& common_rules() {
  static const std::vector<NamedRule> rules = [] {
    using Close = Fusion::Close;
    Fusion one;
    one.rule = Fusion::Rule::kOne;
    Fusion paddle16 = tune::by_size(16 * kMiB, Close::kAfter);
    paddle16.count = 51;  // more than 50 tensors
    return std::vector<NamedRule>{
        {"wfbp", "each gradient alone", Fusion{}},
        {"single", "all gradients in one bucket", one},
        {"ddp_1_25", "DDP: 1 MiB, then 25 MiB", tune::by_size(25 * kMiB, Close::kAfter, kMiB)},
        {"hvd_64", "Horovod: at most 64 MiB", tune::by_size(64 * kMiB, Close::kBefore)},
        {"paddle16_50", "Paddle: 16 MiB or more than 50 tensors", paddle16},
        {"paddle32", "Paddle: 32 MiB", tune::by_size(32 * kMiB, Close::kAfter)}};
  }();
  return rules;
}

std::vector<std::size_t> mg_wfbp(const FusionProblem& problem, const AffineCost& cost) {
  const std::vector<Bytes> bytes(problem.bytes.begin(), problem.bytes.end());
  const auto exchange = [&](Bytes size) {
    return cost.latency + cost.seconds_per_byte * static_cast<double>(size);
  };
  return run_ends(plan::mg_wfbp_groups(problem.ready, bytes, cost.latency, exchange));
}

Bytes best_threshold(const std::vector<Bytes>& thresholds,
                     const std::function<Seconds(Bytes)>& finish) {
  constexpr double kRounding = 1e-12;
  assert(!thresholds.empty() && "there is always one partition");
  Bytes best = thresholds.front();
  Seconds least = finish(best);
  for (const Bytes threshold : thresholds) {
    const Seconds value = finish(threshold);
    if (value >= least * (1 - kRounding)) continue;
    best = threshold;
    least = value;
  }
  return best;
}

std::vector<std::size_t> run_ends(const std::vector<std::vector<int>>& groups) {
  std::vector<std::size_t> ends;
  int next = 0;
  for (const auto& group : groups) {
    for (const int index : group) {
      if (index != next++) return {};
    }
    ends.push_back(static_cast<std::size_t>(group.back()));
  }
  return ends;
}

}  // namespace syncline::test
