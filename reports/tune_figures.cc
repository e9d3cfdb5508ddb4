#include <algorithm>
#include <cmath>

#include "reports/bars.h"
#include "reports/format.h"
#include "reports/tune_figures.h"

namespace syncline::reports {
namespace {

using chart::Unit;

// Frameworks with the same size and step, by name.
struct Default {
  Bytes size = 0;
  Seconds step_time = 0;
  std::vector<std::string> dialects;
};

Bytes size_of_default(const tune::FrameworkDefault& own) {
  const auto cap = own.config.find("bucket_cap_mb");
  const bool capped = cap != own.config.end() && cap->is_number();
  return capped ? static_cast<Bytes>(cap->get<double>() * kMiB) : own.strategy.fusion.size;
}

std::vector<Default> defaults_of(const tune::Tuning& tuning) {
  constexpr double kSame = 1e-3;
  std::vector<Default> all;
  for (const auto& own : tuning.defaults) {
    const Bytes size = size_of_default(own);
    if (size <= 0) continue;
    const auto same = std::find_if(all.begin(), all.end(), [&](const Default& other) {
      return other.size == size &&
             std::abs(other.step_time - own.metrics.step_time) < kSame * own.metrics.step_time;
    });
    if (same == all.end()) {
      all.push_back({size, own.metrics.step_time, {own.dialect}});
    } else {
      same->dialects.push_back(own.dialect);
    }
  }
  return all;
}

// Adds frameworks' defaults that bucket by size. A size far beyond the largest bucket is only
// noted: it would leave no room for the others.
void add_defaults(chart::Figure& figure, const tune::Tuning& tuning) {
  constexpr int kColours[] = {chart::kVermilion, chart::kGreen, chart::kPurple, chart::kSky};
  const Bytes beyond = 4 * tuning.tuned.curve.back().size;
  std::size_t drawn = 0;
  for (const auto& own : defaults_of(tuning)) {
    const std::string name = "default of " + join_and(own.dialects) + ", " + bytes_text(own.size);
    if (own.size > beyond) {
      figure.note += " Not drawn: the " + name + ", which is one bucket of everything (" +
                     seconds_text(own.step_time) + ").";
      continue;
    }
    chart::Series series = chart::point_series(name, kColours[drawn++ % std::size(kColours)]);
    series.points.push_back({static_cast<double>(own.size), own.step_time});
    figure.series.push_back(std::move(series));
  }
}

// Adds the choice with its interval, if it is a size.
void add_choice(chart::Figure& figure, const tune::Tuning& tuning) {
  const tune::Ranked& choice = tuning.tuned.winner();
  const Fusion& fusion = choice.strategy.fusion;
  if (fusion.rule != Fusion::Rule::kSize || fusion.size <= 0) return;
  const auto size = static_cast<double>(fusion.size);
  chart::Series series = chart::point_series(
      "the choice, " + bytes_text(size) + ", with its 80 % interval", chart::kOrange);
  series.points.push_back({size, choice.metrics.step_time});
  if (tuning.certainty.step.high > 0) {
    series.whiskers.push_back({size, tuning.certainty.step.low, tuning.certainty.step.high});
  }
  figure.series.push_back(std::move(series));
}

chart::Series curve_of(const std::vector<tune::CurvePoint>& curve, const char* name) {
  chart::Series series{name, chart::kBlue};
  series.steps = true;
  for (const auto& [size, step] : curve) {
    series.points.push_back({static_cast<double>(size), step});
  }
  return series;
}

}  // namespace

chart::Figure size_figure(const tune::Tuning& tuning) {
  const tune::Tuned& tuned = tuning.tuned;
  chart::Figure figure{
      "s-size",
      "Step time over the size of a bucket: " + one_line(tuning.scenario.name),
      one_line(tuning.scenario.workload.name) + " on " + one_line(tuning.scenario.cluster.name) +
          ", by the " + tuning.executor +
          " executor. A framework's default stands at its own step time, with its other "
          "knobs.",
      {"size of a bucket", Unit::kBytes, true},
      {"step time", Unit::kSeconds}};
  add_choice(figure, tuning);
  if (!tuning.ddp_curve.empty()) {
    figure.series.push_back(curve_of(tuning.ddp_curve, "DDP's own, over bucket_cap_mb"));
    figure.series.back().dashed = true;
  }
  add_defaults(figure, tuning);
  figure.series.push_back(curve_of(tuned.curve, "the best's other knobs fixed"));
  figure.rules.push_back({"the best of all, " + seconds_text(tuned.winner().metrics.step_time),
                          false, tuned.winner().metrics.step_time, chart::kGrey});
  const tune::Certainty& sure = tuning.certainty;
  for (const auto& range : sure.as_good) {
    const auto low = static_cast<double>(range.low);
    const auto high = static_cast<double>(range.high);
    figure.stretches.push_back({"within " + share_text(100 * tune::kAsGood) + " of the best size",
                                low, high, chart::kGreen});
  }
  figure.up.logarithmic = outlying(figure.series);
  return figure;
}

std::vector<Illustration> figures_of(const tune::Tuning& tuning) {
  std::vector<Illustration> pictures;
  if (tuning.tuned.curve.size() > 1) pictures.push_back({size_figure(tuning)});
  std::vector<StepParts> parts;
  const auto& ranking = tuning.tuned.ranking;
  for (std::size_t i = 0; i < ranking.size() && i + 1 < kBarStrategies; ++i) {
    parts.push_back({ranking[i].strategy.name, ranking[i].metrics, ranking[i].step, i == 0});
  }
  const tune::Ranked& baseline = tuning.tuned.baseline;
  const auto step = measure::interval_of(baseline.metrics.step_time, tuning.certainty.baseline);
  parts.push_back({"baseline: " + baseline.strategy.name, baseline.metrics, step});
  pictures.push_back({step_bars(parts)});
  return pictures;
}

}  // namespace syncline::reports
