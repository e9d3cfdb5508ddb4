#include "studies/tune/evaluator.h"

#include <algorithm>

namespace syncline::tune {

run::Executor& Evaluator::executor() {
  if (!executor_) {
    executor_ = factory_({scenario_.cluster, scenario_.simulation, scenario_.seed});
  }
  return *executor_;
}

measure::Evaluated Evaluator::evaluate(const Strategy& strategy) {
  return measure::evaluate_strategy(scenario_, strategy, executor(), cache_);
}

std::string in_pieces(std::size_t count, std::size_t piece, const run::ParallelMap& map,
                      const std::function<std::string(std::size_t)>& bytes_of,
                      const run::JobHooks& hooks) {
  const auto work = [&](std::size_t index) {
    std::string bytes;
    const std::size_t end = std::min(count, (index + 1) * piece);
    for (std::size_t i = index * piece; i < end; ++i) bytes += bytes_of(i);
    return bytes;
  };
  run::JobHooks of_pieces = hooks;
  of_pieces.progress = [&](std::size_t done, std::size_t) {
    hooks.progress(std::min(count, done * piece), count);
  };
  of_pieces.name = [&](std::size_t index) { return hooks.name(index * piece); };
  const std::size_t pieces = (count + piece - 1) / piece;
  std::string all;
  for (const std::string& bytes :
       map ? map(pieces, work, of_pieces) : run::run_jobs(pieces, 1, work, of_pieces)) {
    all += bytes;
  }
  return all;
}

}  // namespace syncline::tune
