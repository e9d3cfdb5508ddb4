#include "core/measure/estimate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/units.h"

namespace syncline::measure {
namespace {

constexpr double kProgram = 42e6;  // bytes, whatever is asked

// What pricing by the model takes for a rank, where the algorithm's messages have to be told apart
// (`run` of 131,072 ranks in nodes of 8; the tree's two trees are looked through chunk by chunk).
struct RankCost {
  std::string_view algorithm;
  Seconds time;
  double bytes;
};
constexpr std::array kRankCosts{
    RankCost{"ring", 1.3e-6, 540},
    RankCost{"to_one", 1.7e-6, 575},
    RankCost{"halving_doubling", 11e-6, 1250},
    RankCost{"nccl", 30e-6, 975},
    RankCost{"double_binary_tree", 60e-6, 970},
};

RankCost rank_cost(std::string_view algorithm) {
  const auto known = std::find_if(kRankCosts.begin(), kRankCosts.end(), [&](const RankCost& cost) {
    return cost.algorithm == algorithm;
  });
  return known == kRankCosts.end() ? kRankCosts.back() : *known;
}

// Operations of one period, beside its buckets.
double operations(const Scenario& scenario, const Strategy& strategy) {
  const double steps =
      strategy.local_sgd.enabled
          ? static_cast<double>(std::max(strategy.local_sgd.period, strategy.local_sgd.max_period))
          : 1;
  const auto batches = static_cast<double>(scenario.workload.micro_batches);
  const auto gradients = static_cast<double>(scenario.workload.tensors.size());
  const double exchanged = strategy.each_micro_batch ? batches : 1;
  return 3 * steps * batches + 3 * gradients * exchanged;
}

// One strategy priced by the model with its intervals: about a dozen runs of its plan.
Estimate model_row(const Scenario& scenario, const Strategy& strategy) {
  constexpr Seconds kRow = 150e-6;
  constexpr Seconds kOperation = 2e-6;
  constexpr double kOperationBytes = 700;
  const auto ranks = static_cast<double>(scenario.cluster.ranks());
  const RankCost by_rank = rank_cost(strategy.algorithm);
  const double ops = operations(scenario, strategy);
  return {kRow + kOperation * ops + by_rank.time * ranks,
          kOperationBytes * ops + by_rank.bytes * ranks};
}

// Every message of every round by itself. The messages of one collective lie in memory together.
Estimate messages(const Scenario& scenario, const Strategy& strategy) {
  constexpr Seconds kMessage = 15e-6;
  constexpr double kMessageBytes = 1400;
  constexpr double kJitteredPeriods = 257;
  const auto ranks = static_cast<double>(scenario.cluster.ranks());
  const bool logarithmic = strategy.algorithm == "halving_doubling";
  const double of_collective = 2 * ranks * (logarithmic ? std::log2(ranks + 1) : ranks);
  const bool jitter = scenario.cluster.jitter.kind != Jitter::Kind::kNone;
  const double periods =
      scenario.simulation.periods.value_or(static_cast<int>(jitter ? kJitteredPeriods : 3));
  double buckets = static_cast<double>(scenario.workload.tensors.size());
  if (strategy.fusion.rule == Fusion::Rule::kOne) buckets = 1;
  if (strategy.fusion.rule == Fusion::Rule::kSize && strategy.fusion.size > 0) {
    const auto bytes = static_cast<double>(gradient_bytes(scenario.workload));
    buckets = std::min(buckets, 1 + bytes / static_cast<double>(strategy.fusion.size));
  }
  return {kMessage * of_collective * buckets * periods, kMessageBytes * of_collective};
}

// The default search: every algorithm in every hierarchy, a fixed number of candidates.
Estimate search(const Scenario& scenario) {
  constexpr Seconds kRank = 390e-6;
  constexpr double kRankBytes = 1750;
  constexpr Seconds kSearch = 3;
  constexpr double kExactGradients = 600;
  constexpr Seconds kGradient = 0.8e-3;
  constexpr double kGradientBytes = 7.5e3;
  const auto ranks = static_cast<double>(scenario.cluster.ranks());
  const auto gradients = static_cast<double>(scenario.workload.tensors.size());
  // Up to kMostExact gradients (core/tune) it grows as their square.
  const double exact = std::min(gradients, kExactGradients) / kExactGradients;
  return {kSearch * exact * exact + kGradient * gradients + kRank * ranks,
          kGradientBytes * gradients + kRankBytes * ranks};
}

// Work one after the other, which leaves its memory behind it.
void follow(Estimate& all, const Estimate& part, double times) {
  all.time += part.time * times;
  all.bytes = std::max(all.bytes, kProgram + part.bytes);
}

}  // namespace

Estimate estimate_of(const Scenario& scenario, Answer answer) {
  constexpr Seconds kPoint = 30e-6;  // the scenario read and judged again
  constexpr Seconds kPointGradient = 3e-6;
  constexpr double kReadBytes = 1500;  // the document of a gradient
  constexpr double kRowBytes = 3000;   // with what is printed of it
  constexpr double kChangesTried = 8;  // by explain, in rows with their intervals
  constexpr Seconds kPrinted = 2e-6;   // of an operation
  constexpr double kPrintedBytes = 700;
  const auto gradients = static_cast<double>(scenario.workload.tensors.size());
  double visited = 1;
  for (const auto& [path, values] : scenario.sweep) visited *= static_cast<double>(values.size());
  Estimate all{0, kProgram};
  double kept = kReadBytes * gradients;  // what was read, and rows, to the end
  const bool rows =
      answer == Answer::kRun || answer == Answer::kRunStreamed || answer == Answer::kSimulate;
  if (rows || answer == Answer::kCheck) {
    all.time += (kPoint + kPointGradient * gradients) * visited;
  }
  if (rows && answer != Answer::kRunStreamed) {
    kept += kRowBytes * visited * static_cast<double>(scenario.strategies.size());
  }
  if (answer == Answer::kTune) follow(all, search(scenario), 1);
  for (const Strategy& strategy : scenario.strategies) {
    const Estimate row = model_row(scenario, strategy);
    if (answer == Answer::kTune) follow(all, row, 1);
    if (answer == Answer::kExplain) follow(all, row, kChangesTried);
    if (rows) follow(all, row, visited);
    if (answer == Answer::kSimulate && scenario.simulation.grain == Simulation::Grain::kStep) {
      follow(all, messages(scenario, strategy), visited);
    }
    if (answer == Answer::kPlan) {  // printed, not priced
      const double ops = operations(scenario, strategy);
      follow(all, {kPrinted * ops, kPrintedBytes * ops}, 1);
    }
  }
  all.bytes += kept;
  return all;
}

bool is_heavy(const Estimate& estimate) {
  constexpr Seconds kLong = 60;
  return estimate.time > kLong || estimate.bytes > static_cast<double>(kMiB) * 1024;
}

}  // namespace syncline::measure
