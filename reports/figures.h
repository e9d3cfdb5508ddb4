// The pictures of each answer: what --html shows and --svg writes. What is left out for want of
// room stands in a figure's note.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "core/calibrate/calibration.h"
#include "core/measure/explanation.h"
#include "core/measure/fidelity.h"
#include "core/measure/metrics.h"
#include "core/measure/report.h"
#include "core/measure/validation.h"
#include "core/tune/live_tuner.h"
#include "core/tune/tuning.h"
#include "reports/page.h"

namespace syncline::reports {

// At most so many bars, lines in colours of their own, lines at all, and rows and columns of a heat
// map; what is beyond is left out, lines are grey.
inline constexpr std::size_t kBarStrategies = 16;
inline constexpr std::size_t kToldApart = 7;
inline constexpr std::size_t kLines = 200;
inline constexpr std::size_t kHeatStrategies = 24;
inline constexpr std::size_t kHeatPoints = 60;

// Where each strategy's step goes, what the sweep does to it, how near the predictions come to
// published figures, and, where timelines were kept, a step of the baseline and of the fastest.
std::vector<Illustration> figures_of(const measure::Report& report);

// The step over the size of buckets, with what is as good as the best and the frameworks' defaults;
// where the step of the best few goes.
std::vector<Illustration> figures_of(const tune::Tuning& tuning);

// The search, evaluation by evaluation.
std::vector<Illustration> figures_of(const tune::LiveReport& report);

// Time, bus bandwidth and error over payload: measured, fitted, predicted.
std::vector<Illustration> figures_of(const calibrate::LogCalibration& calibration);

// Measured against predicted, row by row and by kind of operation.
std::vector<Illustration> figures_of(const measure::Validation& validation);
std::vector<Illustration> figures_of(const std::vector<measure::LiveFile>& files);

// The errors of every table.
std::vector<Illustration> figures_of(const std::vector<measure::FidelityTable>& tables);

// What each strategy is bound by, what changes would gain, and its load on a fabric's links.
std::vector<Illustration> figures_of(const measure::Explanation& explanation);

// Step time over the size of a bucket alone.
chart::Figure size_figure(const tune::Tuning& tuning);

// A step's time by cause, as bars do: computation, handling of gradients, what of communication is
// exposed, and below them what is hidden.
struct StepParts {
  std::string name;
  measure::Metrics metrics;
  measure::Interval interval = {};  // 80 % of the step time; both ends 0 where there is none
  bool best = false;
};
// The fastest on top, whatever their order.
chart::Figure step_bars(std::vector<StepParts> strategies);

// One of several values, over five times their median, would flatten the others.
bool outlying(std::vector<double> values);
// Whether a point of the series lies so.
bool outlying(const std::vector<chart::Series>& series);

// A lane below those that are there; gives its number.
int add_lane(chart::Figure& figure, const std::string& name, const measure::Interval& interval = {},
             bool best = false);
// Breaks bars that are outlying, so that the others have room, and says what strokes and stars are.
void finish_bars(chart::Figure& figure);
void drop_unused_keys(chart::Figure& figure);

// What was predicted over what it is compared with, and how certain it was.
void add_dot(chart::Series& dots, double measured, double predicted,
             const measure::Interval& interval, const std::string& name);
// Such dots, with the line on which both are equal; without anything to show of fewer than two.
chart::Figure scatter(std::vector<chart::Series> dots, const std::string& across, chart::Unit unit,
                      const char* equal);

// Who does what when, as a picture: streams as lanes, operations as bars, strategies under each
// other on one time axis.

// Lanes of a strategy and bars of all lanes at most; beyond these, lanes are left out, and short
// neighbours drawn as one bar in the colour of the longest.
inline constexpr std::size_t kGanttLanes = 12;
inline constexpr std::size_t kGanttBars = 4000;

// The last period of each of the report's traced timelines named by `which`: a step in steady
// state. Time counts from the end of the period before. Each bucket's bars lead to its line in the
// table.
Illustration gantt(const measure::Report& report, const std::vector<std::size_t>& which);

// Of timelines in pairs, the first six: a step as it was predicted, and below it as it was
// measured.
std::vector<Illustration> gantt_pairs(const measure::Report& report);

// Plots as text for a terminal, over a logarithmic axis of bytes (figures.h has them as pictures).

// Step time over the size of buckets, at most 72 columns wide and a dozen lines high; empty for
// fewer than two points. A size of nothing stands at the left end.
std::string curve_text(const std::vector<tune::CurvePoint>& curve);

// "bytes,step_time_s" and one line a point.
std::string curve_csv(const std::vector<tune::CurvePoint>& curve);

struct PlotSeries {
  std::string name;
  std::vector<std::pair<double, double>> points;  // bytes, seconds; measured
  std::vector<std::pair<double, double>> curve;   // fitted, by ascending bytes
};

// Each series' points by a letter of its own, curves by dots, seconds too on a logarithmic axis.
// Empty where there is nothing to draw.
std::string text_plot(const std::vector<PlotSeries>& series);

}  // namespace syncline::reports
