#include "core/tune/candidate_pricer.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>

#include "core/error.h"

namespace syncline {
namespace {

// Metrics as they travel between processes.
std::string bytes_of(const Metrics& metrics) {
  static_assert(std::is_trivially_copyable_v<Metrics>, "metrics travel as they lie in memory");
  std::string bytes(sizeof metrics, '\0');
  std::memcpy(bytes.data(), &metrics, sizeof metrics);
  return bytes;
}

std::vector<Metrics> metrics_of(const std::string& bytes) {
  if (bytes.size() % sizeof(Metrics) != 0) {
    throw MachineError("a candidate's figures from another process are cut short");
  }
  std::vector<Metrics> metrics(bytes.size() / sizeof(Metrics));
  if (!bytes.empty()) std::memcpy(metrics.data(), bytes.data(), bytes.size());
  return metrics;
}

}  // namespace

Executor& CandidatePricer::executor() {
  if (!executor_) {
    executor_ = factory_({scenario_.cluster, scenario_.simulation, scenario_.seed});
  }
  return *executor_;
}

Metrics CandidatePricer::price(const Strategy& strategy) {
  return price_strategy(scenario_, strategy, executor(), book_).metrics;
}

std::vector<Metrics> CandidatePricer::price_all(
    const std::vector<Strategy>& strategies, std::size_t piece, const ParallelMap& map,
    const std::function<void(std::size_t, std::size_t)>& progress,
    const std::function<bool()>& interrupted) {
  const auto price_piece = [&](std::size_t index) {
    std::string bytes;
    const std::size_t end = std::min(strategies.size(), (index + 1) * piece);
    for (std::size_t i = index * piece; i < end; ++i) bytes += bytes_of(price(strategies[i]));
    return bytes;
  };
  JobHooks hooks;
  hooks.interrupted = interrupted;
  hooks.progress = [&](std::size_t done, std::size_t) {
    progress(std::min(strategies.size(), done * piece), strategies.size());
  };
  hooks.name = [&](std::size_t index) { return "'" + strategies[index * piece].name + "'"; };
  std::vector<Metrics> metrics;
  const std::size_t pieces = (strategies.size() + piece - 1) / piece;
  for (const auto& bytes : map(pieces, price_piece, hooks)) {
    const auto some = metrics_of(bytes);
    metrics.insert(metrics.end(), some.begin(), some.end());
  }
  return metrics;
}

}  // namespace syncline
