#include "core/tune/certainty.h"

#include <algorithm>
#include <limits>

namespace syncline::tune {
namespace {

constexpr std::size_t kSizesAsked = 24;  // of the curve, for each input at each end

// The places of the curve that are priced again, the best among them.
std::vector<std::size_t> places_asked(std::size_t count, std::size_t best) {
  std::vector<std::size_t> places;
  const std::size_t asked = std::min(count, kSizesAsked);
  for (std::size_t i = 0; i < asked; ++i) {
    places.push_back(asked < 2 ? 0 : i * (count - 1) / (asked - 1));
  }
  places.push_back(best);
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return places;
}

// The run of sizes around the best of which none costs more than is called as good.
SizeRange as_good_around(const std::vector<CurvePoint>& curve, std::size_t best) {
  const Seconds limit = curve[best].step_time * (1 + kAsGood);
  std::size_t low = best;
  std::size_t high = best;
  while (low > 0 && curve[low - 1].step_time <= limit) --low;
  while (high + 1 < curve.size() && curve[high + 1].step_time <= limit) ++high;
  return {curve[low].size, curve[high].size};
}

// One input at one end of its interval, and what each of the sizes asked takes then.
struct Case {
  measure::Doubt doubt;
  bool slower;
  std::vector<Seconds> steps;

  double lost(std::size_t i) const {
    return percent_above(steps[i], *std::min_element(steps.begin(), steps.end()));
  }
};

std::vector<Case> cases_of(measure::Doubts& doubts, const Tuned& tuned,
                           const std::vector<Bytes>& sizes) {
  std::vector<Case> cases;
  for (const auto doubt : measure::kAllDoubts) {
    if (doubt == measure::Doubt::kFramework) continue;  // it moves all sizes alike
    for (const bool slower : {true, false}) {
      Case& each = cases.emplace_back(Case{doubt, slower, {}});
      for (const Bytes size : sizes) {
        each.steps.push_back(doubts.step_with(tuned.curve_strategy(size), doubt, slower));
      }
    }
  }
  return cases;
}

// Of the sizes in the range the largest whose greatest loss is the least, a tenth of a percent
// aside.
std::size_t safest(const std::vector<Bytes>& sizes, const SizeRange& range,
                   const std::vector<Case>& cases) {
  constexpr double kAlike = 0.1;
  const auto greatest_loss = [&](std::size_t i) {
    double most = 0;
    for (const Case& each : cases) most = std::max(most, each.lost(i));
    return most;
  };
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] >= range.low && sizes[i] <= range.high) least = std::min(least, greatest_loss(i));
  }
  std::size_t safest = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const bool inside = sizes[i] >= range.low && sizes[i] <= range.high;
    if (inside && greatest_loss(i) <= least + kAlike) safest = i;
  }
  return safest;
}

void add_sizes(measure::Doubts& doubts, const Tuned& tuned, Certainty& certainty) {
  const auto& curve = tuned.curve;
  const auto least = std::min_element(
      curve.begin(), curve.end(),
      [](const CurvePoint& a, const CurvePoint& b) { return a.step_time < b.step_time; });
  const auto best = static_cast<std::size_t>(least - curve.begin());
  certainty.best_size = least->size;
  certainty.as_good = as_good_around(curve, best);
  std::vector<Bytes> sizes;
  for (const std::size_t place : places_asked(curve.size(), best)) {
    sizes.push_back(curve[place].size);
  }
  const auto cases = cases_of(doubts, tuned, sizes);
  const std::size_t safe = safest(sizes, *certainty.as_good, cases);
  certainty.safe_size = sizes[safe];
  for (const Case& each : cases) {
    const auto then = std::min_element(each.steps.begin(), each.steps.end());
    certainty.sensitivities.push_back({each.doubt, each.slower,
                                       sizes[static_cast<std::size_t>(then - each.steps.begin())],
                                       each.lost(safe)});
  }
  std::stable_sort(
      certainty.sensitivities.begin(), certainty.sensitivities.end(),
      [](const Sensitivity& a, const Sensitivity& b) { return a.lost_percent > b.lost_percent; });
}

}  // namespace

Certainty certainty_of(const Scenario& scenario, const measure::Pinned& pinned, const Tuned& tuned,
                       const std::vector<FrameworkDefault>& defaults) {
  measure::Doubts doubts(scenario, pinned);
  Certainty certainty;
  const Seconds best = tuned.choice.metrics.step_time;
  const Seconds baseline = tuned.baseline.metrics.step_time;
  certainty.choice = doubts.sway(tuned.choice.strategy);
  certainty.baseline = doubts.sway(tuned.baseline.strategy);
  certainty.step = measure::interval_of(best, certainty.choice);
  certainty.gain = measure::ratio_interval(baseline / best, certainty.baseline, certainty.choice);
  certainty.chance = measure::chance_shorter(best, certainty.choice, baseline, certainty.baseline);
  for (const auto& ranked : tuned.ranking) {
    const Seconds step = ranked.metrics.step_time;
    const measure::Sway sway = doubts.sway(ranked.strategy);
    certainty.ranking.push_back(
        {measure::interval_of(step, sway),
         measure::ratio_interval(baseline / step, certainty.baseline, sway)});
  }
  for (const auto& own : defaults) {
    const double ratio = own.step_time / best;
    const auto interval =
        measure::ratio_interval(ratio, doubts.sway(own.strategy), certainty.choice);
    certainty.defaults.push_back(
        {100 * (ratio - 1), {100 * (interval.low - 1), 100 * (interval.high - 1)}});
  }
  if (tuned.curve.size() > 1) add_sizes(doubts, tuned, certainty);
  return certainty;
}

}  // namespace syncline::tune
