#include "core/tune/candidate_evaluator.h"

#include <algorithm>
#include <string>

#include "core/measure/row_bytes.h"

namespace syncline::tune {

run::Executor& CandidateEvaluator::executor() {
  if (!executor_) {
    executor_ = factory_({scenario_.cluster, scenario_.simulation, scenario_.seed});
  }
  return *executor_;
}

measure::Metrics CandidateEvaluator::cost(const Strategy& strategy) {
  return measure::evaluate_strategy(scenario_, strategy, executor(), cache_).metrics;
}

std::vector<measure::Metrics> CandidateEvaluator::evaluate_all(
    const std::vector<Strategy>& strategies, std::size_t piece, const run::ParallelMap& map,
    const std::function<void(std::size_t, std::size_t)>& progress,
    const std::function<bool()>& interrupted) {
  const auto evaluate_segment = [&](std::size_t index) {
    std::string bytes;
    const std::size_t end = std::min(strategies.size(), (index + 1) * piece);
    for (std::size_t i = index * piece; i < end; ++i) {
      bytes += measure::metrics_bytes(cost(strategies[i]));
    }
    return bytes;
  };
  run::JobHooks hooks;
  hooks.interrupted = interrupted;
  hooks.progress = [&](std::size_t done, std::size_t) {
    progress(std::min(strategies.size(), done * piece), strategies.size());
  };
  hooks.name = [&](std::size_t index) { return "'" + strategies[index * piece].name + "'"; };
  std::vector<measure::Metrics> metrics;
  const std::size_t pieces = (strategies.size() + piece - 1) / piece;
  for (const auto& bytes : map(pieces, evaluate_segment, hooks)) {
    const auto some = measure::metrics_from_bytes(bytes);
    metrics.insert(metrics.end(), some.begin(), some.end());
  }
  return metrics;
}

}  // namespace syncline::tune
