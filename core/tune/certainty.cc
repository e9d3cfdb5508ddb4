#include "core/tune/certainty.h"

#include <algorithm>

namespace syncline::tune {
namespace {

constexpr std::size_t kSizesAsked = 24;  // of the curve, for each input at each end

// The places of the curve that are evaluated again, the best among them.
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

// Every run of sizes of which none costs more than is called as good.
std::vector<SizeRange> as_good_on(const std::vector<CurvePoint>& curve, Seconds least) {
  std::vector<SizeRange> ranges;
  bool open = false;
  for (const CurvePoint& point : curve) {
    const bool good = point.step_time <= least * (1 + kAsGood);
    if (good && open) ranges.back().high = point.size;
    if (good && !open) ranges.push_back({point.size, point.size});
    open = good;
  }
  return ranges;
}

// One input at one end of its interval, and what each of the sizes asked takes then.
struct Case {
  measure::Uncertainty uncertainty;
  bool slower;
  std::vector<Seconds> steps;

  double lost(std::size_t i) const {
    return percent_above(steps[i], *std::min_element(steps.begin(), steps.end()));
  }
};

std::vector<Case> cases_of(measure::Uncertainties& uncertainties, const Tuned& tuned,
                           const std::vector<Bytes>& sizes) {
  std::vector<Case> cases;
  for (const auto uncertainty : measure::kAllUncertainties) {
    if (uncertainty == measure::Uncertainty::kFramework) continue;  // it moves all sizes alike
    for (const bool slower : {true, false}) {
      Case& each = cases.emplace_back(Case{uncertainty, slower, {}});
      for (const Bytes size : sizes) {
        each.steps.push_back(
            uncertainties.step_with(tuned.curve_strategy(size), uncertainty, slower));
      }
    }
  }
  return cases;
}

void add_sizes(measure::Uncertainties& uncertainties, const Tuned& tuned, Certainty& certainty) {
  const auto& curve = tuned.curve;
  const auto least = std::min_element(
      curve.begin(), curve.end(),
      [](const CurvePoint& a, const CurvePoint& b) { return a.step_time < b.step_time; });
  certainty.as_good = as_good_on(curve, least->step_time);
  // The best's own place, where it is one of the curve.
  const Fusion& fusion = tuned.winner().strategy.fusion;
  const auto own = std::find_if(curve.begin(), curve.end(), [&](const CurvePoint& point) {
    return fusion.rule == Fusion::Rule::kSize && point.size == fusion.size;
  });
  if (own == curve.end()) return;
  certainty.size = own->size;
  std::vector<Bytes> sizes;
  for (const std::size_t place :
       places_asked(curve.size(), static_cast<std::size_t>(own - curve.begin()))) {
    sizes.push_back(curve[place].size);
  }
  const auto at = std::find(sizes.begin(), sizes.end(), own->size) - sizes.begin();
  for (const Case& each : cases_of(uncertainties, tuned, sizes)) {
    const auto then = std::min_element(each.steps.begin(), each.steps.end());
    certainty.size_sensitivities.push_back(
        {each.uncertainty, each.slower, sizes[static_cast<std::size_t>(then - each.steps.begin())],
         each.lost(static_cast<std::size_t>(at))});
  }
  std::stable_sort(certainty.size_sensitivities.begin(), certainty.size_sensitivities.end(),
                   [](const SizeSensitivity& a, const SizeSensitivity& b) {
                     return a.lost_percent > b.lost_percent;
                   });
}

}  // namespace

Certainty certainty_of(const Scenario& scenario, const measure::FitErrors& fit_errors,
                       const Tuned& tuned, const std::vector<FrameworkDefault>& defaults) {
  measure::Uncertainties uncertainties(scenario, fit_errors);
  Certainty certainty;
  const Seconds best = tuned.winner().metrics.step_time;
  const Seconds baseline = tuned.baseline.metrics.step_time;
  certainty.choice = uncertainties.sensitivity(tuned.winner().strategy);
  certainty.baseline = uncertainties.sensitivity(tuned.baseline.strategy);
  certainty.step = measure::interval_of(best, certainty.choice);
  certainty.gain = measure::ratio_interval(baseline / best, certainty.baseline, certainty.choice);
  certainty.chance = measure::chance_shorter(best, certainty.choice, baseline, certainty.baseline);
  for (const auto& ranked : tuned.ranking) {
    const Seconds step = ranked.metrics.step_time;
    const measure::Sensitivity sensitivity = uncertainties.sensitivity(ranked.strategy);
    certainty.ranking.push_back(
        {measure::interval_of(step, sensitivity),
         measure::ratio_interval(baseline / step, certainty.baseline, sensitivity)});
  }
  for (const auto& own : defaults) {
    const double ratio = own.step_time / best;
    const auto interval =
        measure::ratio_interval(ratio, uncertainties.sensitivity(own.strategy), certainty.choice);
    certainty.defaults.push_back(
        {100 * (ratio - 1), {100 * (interval.low - 1), 100 * (interval.high - 1)}});
  }
  if (tuned.curve.size() > 1) add_sizes(uncertainties, tuned, certainty);
  return certainty;
}

}  // namespace syncline::tune
