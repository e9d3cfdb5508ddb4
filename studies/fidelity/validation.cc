#include "studies/fidelity/validation.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

#include "core/base/index.h"
#include "core/base/statistics.h"

namespace syncline::measure {
namespace {

std::string kind_of(const plan::Work& work) {
  // In the order of plan::Phase and of plan::Busy::Reason.
  constexpr std::array kPhases{"forward", "backward", "update", "average"};
  constexpr std::array kReasons{"encode", "decode", "copy", "copy", "wait", "wait", "sums", "wait"};
  static_assert(kReasons.size() == static_cast<int>(plan::Busy::Reason::kInterference) + 1);
  if (const auto* compute = std::get_if<plan::Compute>(&work)) {
    return kPhases.at(static_cast<std::size_t>(compute->phase));
  }
  if (const auto* collective = std::get_if<collective::Collective>(&work)) {
    return std::string(collective::to_string(collective->kind));
  }
  return kReasons.at(static_cast<std::size_t>(std::get<plan::Busy>(work).reason));
}

// Returns the mean length of each operation over the ranks and periods from `first` on.
std::vector<Seconds> mean_lengths(const plan::Plan& plan, const run::Timeline& timeline,
                                  int first) {
  std::vector<Seconds> sum(plan.ops.size(), 0);
  std::vector<int> count(plan.ops.size(), 0);
  for (const auto& span : timeline.spans) {
    if (span.period < first) continue;
    sum[index(span.op)] += span.end - span.begin;
    ++count[index(span.op)];
  }
  for (std::size_t i = 0; i < sum.size(); ++i) {
    if (count[i] > 0) sum[i] /= count[i];
  }
  return sum;
}

std::string in_percent(double ratio) {
  const long percent = std::lround((ratio - 1) * 100);
  return std::to_string(std::abs(percent)) + " % " + (percent > 0 ? "longer" : "shorter");
}

}  // namespace

std::optional<double> measured_speedup(const Validation& validation, const ValidatedRow& row) {
  for (const auto& other : validation.rows) {
    if (other.strategy == validation.baseline) return other.median / row.median;
  }
  return std::nullopt;
}

ValidatedRow compare(const std::string& strategy, const plan::Plan& plan, Seconds predicted_step,
                     const run::Timeline& predicted, const run::Timeline& measured, int warmup) {
  ValidatedRow row;
  row.strategy = strategy;
  row.predicted = predicted_step;
  const auto& ends = measured.period_ends;
  assert(static_cast<int>(ends.size()) > warmup && warmup > 0 && "a step lies between two ends");
  for (std::size_t p = index(warmup); p < ends.size(); ++p) {
    row.steps.push_back((ends[p] - ends[p - 1]) / plan.steps);
  }
  row.median = median(row.steps);
  constexpr double kMax = 0.95;
  row.p95 = percentile(row.steps, kMax);

  const int last = static_cast<int>(predicted.period_ends.size()) - 1;
  const auto forecast = mean_lengths(plan, predicted, last);
  const auto found = mean_lengths(plan, measured, warmup);
  // If streams share links, or encodings delay ranks, a collective's length is not its link's time.
  const bool encodes = std::ranges::any_of(
      plan.buckets, [](const auto* codec) { return codec != nullptr; }, &plan::Bucket::codec);
  const bool alone = plan::communication_streams(plan) <= 1 && !encodes;
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const std::string kind = kind_of(plan.ops[i].work);
    auto time = std::ranges::find(row.kinds, kind, &KindTime::kind);
    if (time == row.kinds.end()) time = row.kinds.insert(time, {.kind = kind});
    ++time->operations;
    time->predicted += forecast[i];
    time->measured += found[i];
    const auto* collective = std::get_if<collective::Collective>(&plan.ops[i].work);
    if (collective != nullptr && alone) {
      row.collectives.push_back({kind, 1, forecast[i], found[i]});
    }
  }
  for (KindTime& time : row.kinds) {
    time.predicted /= plan.steps;
    time.measured /= plan.steps;
  }
  return row;
}

std::vector<std::string> link_advice(const Validation& validation) {
  std::vector<KindTime> all;
  std::vector<double> errors;
  for (const auto& row : validation.rows) {
    errors.push_back(std::abs(row.error()));
    all.insert(all.end(), row.collectives.begin(), row.collectives.end());
  }
  std::erase_if(all, [](const KindTime& one) { return one.predicted <= 0 || one.measured <= 0; });
  constexpr std::size_t kFew = 8;
  constexpr double kFar = 0.15;
  if (all.size() < kFew) {
    if (!validation.samples.empty() || errors.empty() || median(errors) < kFar) return {};
    return {
        "The links are the scenario's, not these ranks': --calibrate measures them first and "
        "predicts with what it finds."};
  }
  std::ranges::sort(all, {}, &KindTime::predicted);
  // The quicker third is latency, the slower third bandwidth.
  const std::size_t third = all.size() / 3;
  const auto ratio_of = [&](std::size_t begin, std::size_t end) {
    std::vector<double> ratios;
    for (std::size_t i = begin; i < end; ++i) ratios.push_back(all[i].measured / all[i].predicted);
    return median(ratios);
  };
  const double small = ratio_of(0, third);
  const double large = ratio_of(all.size() - third, all.size());
  // Smaller deviations are within the error of a calibrated model.
  constexpr double kLatency = 0.25;
  constexpr double kBandwidth = 0.08;
  std::vector<std::string> advice;
  const auto add = [&](const std::string& size, double ratio, const std::string& figure) {
    advice.push_back(size + " collectives take " + in_percent(ratio) + " than predicted: the " +
                     figure + " are off; calibrate the links again (validate --calibrate, or " +
                     "calibrate live).");
  };
  if (std::abs(small - 1) > kLatency) add("Small", small, "latencies");
  if (std::abs(large - 1) > kBandwidth) add("Large", large, "bandwidths");
  return advice;
}

}  // namespace syncline::measure
