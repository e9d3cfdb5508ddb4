// The pictures of each answer: what --html shows and --svg writes. What is left out for want of
// room stands in a figure's note.
#pragma once

#include <vector>

#include "core/calibrate/calibration.h"
#include "core/measure/explanation.h"
#include "core/measure/fidelity.h"
#include "core/measure/metrics.h"
#include "core/measure/report.h"
#include "core/measure/validation.h"
#include "core/tune/live_report.h"
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
// Breaks bars that are, so that the others have room, and says what strokes and stars are.
void finish_bars(chart::Figure& figure);

// Dots of what was measured over what was predicted, with the line on which both are equal.
struct Compared {
  std::string name;
  Seconds predicted = 0;
  Seconds measured = 0;
  measure::Interval interval;  // 80 % of the prediction; both ends 0 where there is none
};
chart::Figure scatter(const std::vector<Compared>& rows);

}  // namespace syncline::reports
