// The likeliest values (maximum a posteriori) of
//   overlap_slowdown, overlap_delay_us   log-normal around the estimates in core/cluster.h,
//                                        independent; the collective's slowdown stays in
//                                        proportion to the computation's
//   data_parallel_overhead_us            half a Cauchy distribution above the given value, of
//                                        width 1 % of a step (Gelman, Bayesian Analysis 1(3), 2006)
// if log(predicted step / measured step) is normal. One set of values holds for all rows.
#include "studies/calibrate/step_fit.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include <Eigen/Dense>

#include "core/base/error.h"
#include "core/cluster.h"
#include "core/executor.h"
#include "core/job/overlap.h"
#include "core/metrics.h"
#include "core/metrics/phases.h"
#include "core/run/interference.h"
#include "formats/json/reader.h"
#include "formats/json/text.h"
#include "formats/text/digits.h"
#include "studies/rows/uncertainty.h"
#include "studies/study/study_calibration.h"

namespace syncline::calibrate {
namespace {

constexpr double kTells = 0.01;    // information / the prior's, below which rows do not count
constexpr double kNarrowed = 0.7;  // interval / the prior's, up to which a value is determined
constexpr double kFar = 0.06;      // error of a fitted row that these values do not explain
constexpr double kWorse = 0.005;   // increase of left-out rows' median error
constexpr int kStepDigits = 6;

// Other errors of a row: the model of a step errs by 1 % in the median and by 4 % at the 90th
// percentile of live runs, and a measured median by about as much.
constexpr double kRowSpread = 0.02;
constexpr double kOverheadShare = 0.01;  // expected overhead, as a share of a step

// Losses of the device to data-parallel training.
struct Losses {
  Overlap overlap;
  Seconds overhead = 0;  // per step
};

// Step times of a scenario's rows as functions of the losses, by the closed-form model without
// reading the scenario again.
class StepModel {
 public:
  explicit StepModel(const input::Document& document)
      : document_(document),
        scenario_(
            measure::at_point(document, sweep_points(input::parse_scenario(document)).front())) {}

  // Returns the scenario of the first sweep point; its device is that of all points.
  const Scenario& scenario() const { return scenario_; }

  // Returns a row's step time. Throws InputError if its sweep point makes the scenario wrong.
  Seconds step(const measure::RowKey& key, const Losses& losses) {
    Point& point = point_of(key);
    Device& device = point.scenario.cluster.device;
    device.overlap = losses.overlap;
    device.data_parallel_overhead = losses.overhead;
    return measure::mean_over_phases(
        point.scenario, *find_strategy(point.scenario, key.strategy), point.model->traits(),
        [&](measure::TrainingStretch& phase) {
          const auto plan = run::with_interference(std::move(phase.plan), device, *point.cache);
          const auto outcome = point.model->run(plan, {}, phase.periods);
          return measure::step_time_of(plan, outcome.timeline, phase.warmup);
        });
  }

  // Returns the samples of all ranks in a step of the row.
  double samples(const measure::RowKey& key) {
    const Scenario& scenario = point_of(key).scenario;
    return static_cast<double>(samples_of(scenario.workload)) * scenario.cluster.ranks();
  }

 private:
  struct Point {
    SweepPoint values;
    Scenario scenario;
    // Costs depend only on the network, not on the device's losses.
    std::shared_ptr<collective::CostCache> cache;
    std::unique_ptr<run::Executor> model;
  };

  Point& point_of(const measure::RowKey& key) {
    const auto known = std::ranges::find(points_, key.point, &Point::values);
    if (known != points_.end()) return *known;
    points_.push_back({key.point, measure::at_point(document_, key.point), nullptr, nullptr});
    Point& point = points_.back();
    point.cache = std::make_shared<collective::CostCache>(point.scenario.cluster);
    point.model = run::make_cached_executor(point.cache);
    return point;
  }

  const input::Document& document_;
  Scenario scenario_;
  std::vector<Point> points_;
};

// One value: the logarithm of its ratio to the estimate or, on a linear axis, its excess over the
// given value in units of the expected one.
struct Axis {
  std::string key;  // key of cluster.device
  double unit = 1;
  Seconds centre = 0;  // estimate; a share, for the slowdown
  // Standard deviations of the prior, below and above; linear axes have none.
  double below = 1;
  double above = 1;
  Seconds scale = 0;  // unit of a linear axis

  bool linear() const { return scale > 0; }
  double value(double x) const {
    return linear() ? std::max(0.0, centre + scale * x) : centre * std::exp(x);
  }
  // Returns a residual; its square is -2 log of the prior, up to a constant.
  double penalty(double x) const {
    if (linear()) return std::copysign(std::sqrt(2 * std::log1p(x * x)), x);
    return x / (x < 0 ? below : above);
  }
  // Returns the prior's precision: 1 / squared standard deviation.
  double precision(double x, bool lower) const {
    if (linear()) return 1 / (1 + x * x);
    return 1 / ((lower ? below : above) * (lower ? below : above));
  }
  double least() const { return linear() ? -centre / scale : -4; }
  double most() const { return linear() ? 0.5 / kOverheadShare : 3; }
};

constexpr const char* kSlowdown = "overlap_slowdown";
constexpr const char* kDelay = "overlap_delay_us";
constexpr const char* kOverhead = "data_parallel_overhead_us";

// Posterior of a device's losses from measured steps: the prior of core/cluster.h and the fitted
// rows, on unbounded axes.
class Posterior {
 public:
  // Stores model and rows. Requires that the model outlives this, and a row.
  Posterior(StepModel& model, std::vector<StepRow> rows) : model_(model), rows_(std::move(rows)) {
    const Cluster& cluster = model_.scenario().cluster;
    const OverlapPrior estimate = overlap_believed(cluster);
    const double below = -std::log(estimate.least) / measure::kHeldDeviations;
    const double above = std::log(estimate.most) / measure::kHeldDeviations;
    if (estimate.likely.slowdown > 0 && above > 0) {
      axes_.push_back({kSlowdown, 1, estimate.likely.slowdown, below, above});
    }
    if (estimate.likely.delay > 0 && above > 0) {
      axes_.push_back({kDelay, kMicrosecond, estimate.likely.delay, below, above});
    }
    Seconds sum = 0;
    for (const StepRow& row : rows_) sum += row.measured;
    axes_.push_back({kOverhead, kMicrosecond, cluster.device.data_parallel_overhead, 1, 1,
                     kOverheadShare * (sum / static_cast<double>(rows_.size()))});
  }

  // Returns the axes; the overhead comes last.
  const std::vector<Axis>& axes() const { return axes_; }

  Losses losses(const std::vector<double>& place) const {
    Losses losses{overlap_believed(model_.scenario().cluster).likely, 0};
    for (std::size_t i = 0; i < axes_.size(); ++i) {
      const double value = axes_[i].value(place[i]);
      if (axes_[i].key == kSlowdown) {
        losses.overlap.collective_slowdown *= value / losses.overlap.slowdown;
        losses.overlap.slowdown = value;
      } else {
        (axes_[i].linear() ? losses.overhead : losses.overlap.delay) = value;
      }
    }
    return losses;
  }

  // Returns the best end of several descents: step times have kinks at which a descent may stop.
  std::vector<double> likeliest() const {
    const auto residuals = [&](const std::vector<double>& place) {
      auto list = misses(place);
      for (std::size_t i = 0; i < axes_.size(); ++i) list.push_back(axes_[i].penalty(place[i]));
      return list;
    };
    std::vector<double> best;
    double least = 0;
    for (const double logarithm : {0.0, -1.2, 1.2}) {
      for (const double overhead : {0.0, 3.0}) {
        std::vector<Calibration::Parameter> parameters;
        for (const auto& axis : axes_) {
          const double start = axis.linear() ? overhead : logarithm;
          parameters.push_back({"", start, axis.least(), axis.most()});
        }
        auto found = measure::fit_parameters(parameters, residuals);
        double sum = 0;
        for (const double miss : residuals(found)) sum += miss * miss;
        if (!best.empty() && sum >= least * (1 - 1e-9)) continue;
        best = std::move(found);
        least = sum;
      }
    }
    return best;
  }

  // Returns the information of the rows without the prior: the Gauss-Newton approximation.
  Eigen::MatrixXd information(const std::vector<double>& place) const {
    constexpr double kStep = 0.1;  // spans kinks
    Eigen::MatrixXd slopes(static_cast<Eigen::Index>(rows_.size()),
                           static_cast<Eigen::Index>(axes_.size()));
    for (std::size_t i = 0; i < axes_.size(); ++i) {
      auto up = place;
      auto down = place;
      up[i] += kStep;
      down[i] = std::max(axes_[i].least(), down[i] - kStep);
      const auto above = misses(up);
      const auto below = misses(down);
      for (std::size_t r = 0; r < rows_.size(); ++r) {
        slopes(static_cast<Eigen::Index>(r), static_cast<Eigen::Index>(i)) =
            (above[r] - below[r]) / (up[i] - down[i]);
      }
    }
    return slopes.transpose() * slopes;
  }

  // Returns the remaining covariance of the axes, towards lower or higher values.
  Eigen::MatrixXd covariance(const Eigen::MatrixXd& information, const std::vector<double>& place,
                             bool lower) const {
    Eigen::MatrixXd all = information;
    for (std::size_t i = 0; i < axes_.size(); ++i) {
      const auto at = static_cast<Eigen::Index>(i);
      all(at, at) += axes_[i].precision(place[i], lower);
    }
    return all.inverse();
  }

 private:
  // Returns log(predicted / measured), in standard deviations.
  std::vector<double> misses(const std::vector<double>& place) const {
    const Losses lost = losses(place);
    std::vector<double> misses;
    for (const StepRow& row : rows_) {
      misses.push_back(std::log(model_.step(row.key, lost) / row.measured) / kRowSpread);
    }
    return misses;
  }

  StepModel& model_;
  std::vector<StepRow> rows_;
  std::vector<Axis> axes_;
};

void expect_one_device(const input::Document& document, const Scenario& scenario) {
  if (!scenario.calibration.parameters.empty()) {
    throw InputError(document.file +
                     ": calibration: expected none, since its keys are fitted at every run; "
                     "overlap_slowdown may be one of them");
  }
  for (const auto& [path, values] : scenario.sweep) {
    if (path != "cluster" && !path.starts_with("cluster.device")) continue;
    throw InputError(document.file + ": sweep: found " + path +
                     ", expected one device, to which one set of values is fitted");
  }
}

// Returns the rows with a published step time, in that order.
std::vector<StepRow> measured_rows(StepModel& model) {
  const Scenario& scenario = model.scenario();
  const auto points = sweep_points(scenario);
  std::vector<StepRow> rows;
  for (std::size_t i = 0; i < scenario.published.size(); ++i) {
    const Published& published = scenario.published[i];
    if (!published.step_time && !published.throughput) continue;
    const auto point = std::find_if(points.begin(), points.end(), [&](const SweepPoint& one) {
      return measure::matches_point(one, published.sweep);
    });
    if (point == points.end()) continue;
    StepRow row;
    row.key = {*point, published.strategy};
    row.place = i;
    row.measured =
        published.step_time ? *published.step_time : model.samples(row.key) / *published.throughput;
    row.fitted = published.calibrated;
    rows.push_back(std::move(row));
  }
  return rows;
}

std::optional<std::size_t> count_in(const std::vector<std::string>& words) {
  if (words.size() != 1 || words.front().empty() || words.front().size() > 6) return std::nullopt;
  const std::string& word = words.front();
  if (!std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; })) {
    return std::nullopt;
  }
  return std::stoul(word);
}

void choose_first(std::size_t count, std::vector<StepRow>& rows) {
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].fitted = i < count;
}

void choose_named(const std::vector<std::string>& names, std::vector<StepRow>& rows) {
  std::vector<std::string> known;
  for (auto& row : rows) {
    row.fitted = false;
    known.push_back(row.key.strategy);
  }
  for (const auto& name : names) {
    bool found = false;
    for (auto& row : rows) {
      if (row.key.strategy != name && measure::name_of(row.key) != name) continue;
      row.fitted = found = true;
    }
    if (found) continue;
    throw InputError("--rows: no published step time of '" + name + "'" +
                     did_you_mean(name, known));
  }
}

void choose(const input::Document& document, const std::vector<std::string>& words,
            std::vector<StepRow>& rows) {
  constexpr std::size_t kFirst = 2;
  if (rows.empty()) {
    throw InputError(document.file +
                     ": published: expected rows with step_time_s or throughput, measured on the "
                     "job");
  }
  if (const auto count = count_in(words)) {
    if (*count == 0 || *count > rows.size()) {
      throw InputError("--rows: found " + words.front() + ", expected 1 to " +
                       std::to_string(rows.size()) + ", or names");
    }
    choose_first(*count, rows);
  } else if (!words.empty()) {
    choose_named(words, rows);
  } else if (std::none_of(rows.begin(), rows.end(), [](const auto& row) { return row.fitted; })) {
    choose_first(kFirst, rows);
  }
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == words.size() ? " and " : ", ") + words[i];
  }
  return text;
}

// Returns the standard deviation of one factor on all costs of overlap, for any overhead.
double common_spread(const Eigen::MatrixXd& covariance) {
  const Eigen::Index overlaps = covariance.rows() - 1;
  const Eigen::MatrixXd inverse = covariance.topLeftCorner(overlaps, overlaps).inverse();
  return 1 / std::sqrt(inverse.sum());
}

// Fills in the figures and notes the ones that the rows leave open.
void describe(const Posterior& posterior, const std::vector<double>& place, StepFit& fit) {
  const Eigen::MatrixXd information = posterior.information(place);
  const Eigen::MatrixXd believed = posterior.information(std::vector<double>(place.size(), 0));
  const Eigen::MatrixXd lower = posterior.covariance(information, place, true);
  const Eigen::MatrixXd upper = posterior.covariance(information, place, false);
  std::vector<std::string> silent;
  std::vector<std::string> vague;
  for (std::size_t i = 0; i < place.size(); ++i) {
    const Axis& axis = posterior.axes()[i];
    const auto at = static_cast<Eigen::Index>(i);
    const double known = axis.precision(place[i], false);
    const double unit = axis.unit;
    StepFigure figure{axis.key, axis.centre / unit, axis.value(place[i]) / unit};
    figure.low = axis.value(place[i] - measure::kHeldDeviations * std::sqrt(lower(at, at))) / unit;
    figure.high = axis.value(place[i] + measure::kHeldDeviations * std::sqrt(upper(at, at))) / unit;
    // A value pushed near 0 by the rows hardly affects steps: the prior's centre counts as well.
    figure.told = std::max(information(at, at), believed(at, at)) >= kTells * known;
    if (!figure.told) silent.push_back(figure.key);
    const bool narrowed = std::sqrt(upper(at, at) * known) <= kNarrowed;
    if (figure.told && !narrowed && !axis.linear()) vague.push_back(figure.key);
    fit.figures.push_back(std::move(figure));
  }
  if (!silent.empty()) {
    fit.notes.push_back("the fitted rows say nothing of " + joined(silent) +
                        ": their steps are the same whatever it is; it stays what was assumed");
  }
  if (!vague.empty()) {
    fit.notes.push_back("the fitted rows hardly tell " + joined(vague) +
                        " from the rest: rows of other bucket sizes, or one without overlap, "
                        "would");
  }
}

// Notes the values that cannot be fitted.
void say_what_is_fixed(const Cluster& cluster, const Posterior& posterior, StepFit& fit) {
  if (posterior.axes().size() > 1) return;
  const Device& device = cluster.device;
  fit.notes.push_back(
      device.overlap.given ? "overlap_slowdown is given as 0, as where times were measured during "
                             "collectives, and stays"
      : device.data_parallel_slowdown > 0
          ? "overlap_slowdown is not fitted: data_parallel_slowdown tells the same of the whole "
            "step"
          : "overlap_slowdown is not fitted: nothing is known of what carries out these "
            "collectives "
            "(cluster.library)");
}

double median_miss(const std::vector<StepRow>& rows, Seconds StepRow::*predicted) {
  std::vector<double> misses;
  for (const auto& row : rows) {
    if (!row.fitted) misses.push_back(std::fabs(std::log(row.*predicted / row.measured)));
  }
  std::sort(misses.begin(), misses.end());
  return misses.empty() ? 0 : misses[misses.size() / 2];
}

void write(const input::Document& document, const Losses& losses, double spread, StepFit& fit) {
  fit.fitted = document;
  const auto set = [&](const std::string& key, double value) {
    input::set_key(fit.fitted, "cluster.device." + key, significant(value, kStepDigits));
  };
  const bool overlap = std::any_of(fit.figures.begin(), fit.figures.end() - 1,
                                   [](const StepFigure& figure) { return figure.told; });
  if (overlap) {
    set(kSlowdown, losses.overlap.slowdown);
    set("overlap_collective_slowdown", losses.overlap.collective_slowdown);
    set(kDelay, losses.overlap.delay / kMicrosecond);
    set("overlap_spread", spread);
  }
  set(kOverhead, losses.overhead / kMicrosecond);
  Json& published = fit.fitted.root["published"];
  std::size_t used = 0;
  for (const auto& row : fit.rows) {
    published[row.place]["use"] = row.fitted ? "calibrated" : "predicted";
    used += row.fitted ? 1 : 0;
  }
  fit.fitted.root["notes"].push_back(
      std::string("what ") +
      (overlap ? "collectives and computation slow each other down and " : "") +
      "each step costs besides was fitted to " + std::to_string(used) + " of " +
      std::to_string(fit.rows.size()) + " measured steps of the job");
}

}  // namespace

StepFit fit_steps(const input::Document& document, const std::vector<std::string>& rows) {
  StepModel model(document);
  expect_one_device(document, model.scenario());
  StepFit fit;
  fit.scenario = model.scenario().name;
  fit.rows = measured_rows(model);
  choose(document, rows, fit.rows);
  std::vector<StepRow> used;
  std::ranges::copy_if(fit.rows, std::back_inserter(used), &StepRow::fitted);
  const Posterior posterior(model, std::move(used));
  const auto place = posterior.likeliest();
  const Losses after = posterior.losses(place);
  const Cluster& cluster = model.scenario().cluster;
  const Device& device = cluster.device;
  for (auto& row : fit.rows) {
    row.before = model.step(row.key, {device.overlap, device.data_parallel_overhead});
    row.after = model.step(row.key, after);
  }
  describe(posterior, place, fit);
  say_what_is_fixed(cluster, posterior, fit);
  const bool far = std::any_of(fit.rows.begin(), fit.rows.end(), [](const StepRow& row) {
    return row.fitted && std::fabs(std::log(row.after / row.measured)) > kFar;
  });
  if (far) {
    fit.notes.emplace_back(
        "fitted rows stay more than 6 % off: the computation or the network is not what the "
        "scenario says, and the values found have taken what they could of that");
  }
  if (median_miss(fit.rows, &StepRow::after) > median_miss(fit.rows, &StepRow::before) + kWorse) {
    fit.notes.emplace_back(
        "rows that were left out are predicted worse than before: something else than these values "
        "sets them apart from the fitted ones");
  }
  const double spread =
      posterior.axes().size() > 1
          ? common_spread(posterior.covariance(posterior.information(place), place, false))
          : 0;
  write(document, after, spread, fit);
  return fit;
}

}  // namespace syncline::calibrate
