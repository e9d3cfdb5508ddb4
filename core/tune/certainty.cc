#include "core/tune/certainty.h"

#include <algorithm>
#include <cmath>

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

std::vector<Sensitivity> sensitivities_of(measure::Doubts& doubts, const Tuned& tuned,
                                          std::size_t best) {
  const auto places = places_asked(tuned.curve.size(), best);
  std::vector<Sensitivity> list;
  for (const auto doubt : measure::kAllDoubts) {
    if (doubt == measure::Doubt::kFramework) continue;  // it moves all sizes alike
    for (const bool slower : {true, false}) {
      Sensitivity sensitivity{.doubt = doubt, .slower = slower};
      Seconds least = 0;
      Seconds chosen = 0;
      for (const std::size_t place : places) {
        const Bytes size = tuned.curve[place].size;
        const Seconds step = doubts.step_with(tuned.curve_strategy(size), doubt, slower);
        if (place == best) chosen = step;
        if (least > 0 && step >= least * (1 - 1e-9)) continue;
        least = step;
        sensitivity.best = size;
      }
      sensitivity.lost_percent = percent_above(chosen, least);
      list.push_back(sensitivity);
    }
  }
  std::stable_sort(list.begin(), list.end(), [](const Sensitivity& a, const Sensitivity& b) {
    return a.lost_percent > b.lost_percent;
  });
  return list;
}

}  // namespace

Certainty certainty_of(const Scenario& scenario, const Tuned& tuned,
                       const std::vector<FrameworkDefault>& defaults) {
  measure::Doubts doubts(scenario);
  Certainty certainty;
  const Seconds best = tuned.choice.metrics.step_time;
  const Seconds baseline = tuned.baseline.metrics.step_time;
  certainty.choice = doubts.sway(tuned.choice.strategy);
  certainty.baseline = doubts.sway(tuned.baseline.strategy);
  certainty.step = measure::interval_of(best, certainty.choice);
  certainty.gain = measure::ratio_interval(baseline / best, certainty.baseline, certainty.choice);
  certainty.chance = measure::chance_shorter(best, certainty.choice, baseline, certainty.baseline);
  for (const auto& own : defaults) {
    const double ratio = own.step_time / best;
    const auto interval =
        measure::ratio_interval(ratio, doubts.sway(own.strategy), certainty.choice);
    certainty.defaults.push_back(
        {100 * (ratio - 1), {100 * (interval.low - 1), 100 * (interval.high - 1)}});
  }
  if (tuned.curve.size() < 2) return certainty;
  const auto least = std::min_element(
      tuned.curve.begin(), tuned.curve.end(),
      [](const CurvePoint& a, const CurvePoint& b) { return a.step_time < b.step_time; });
  const auto place = static_cast<std::size_t>(least - tuned.curve.begin());
  certainty.size = least->size;
  certainty.as_good = as_good_around(tuned.curve, place);
  certainty.sensitivities = sensitivities_of(doubts, tuned, place);
  return certainty;
}

}  // namespace syncline::tune
