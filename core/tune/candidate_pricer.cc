#include "core/tune/candidate_pricer.h"

#include <algorithm>
#include <string>

#include "core/measure/row_bytes.h"

namespace syncline::tune {

run::Executor& CandidatePricer::executor() {
  if (!executor_) {
    executor_ = factory_({scenario_.cluster, scenario_.simulation, scenario_.seed});
  }
  return *executor_;
}

measure::Metrics CandidatePricer::price(const Strategy& strategy) {
  return measure::price_strategy(scenario_, strategy, executor(), book_).metrics;
}

std::vector<measure::Metrics> CandidatePricer::price_all(
    const std::vector<Strategy>& strategies, std::size_t piece, const run::ParallelMap& map,
    const std::function<void(std::size_t, std::size_t)>& progress,
    const std::function<bool()>& interrupted) {
  const auto price_piece = [&](std::size_t index) {
    std::string bytes;
    const std::size_t end = std::min(strategies.size(), (index + 1) * piece);
    for (std::size_t i = index * piece; i < end; ++i) {
      bytes += measure::metrics_bytes(price(strategies[i]));
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
  for (const auto& bytes : map(pieces, price_piece, hooks)) {
    const auto some = measure::metrics_from_bytes(bytes);
    metrics.insert(metrics.end(), some.begin(), some.end());
  }
  return metrics;
}

}  // namespace syncline::tune
