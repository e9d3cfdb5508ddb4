#include "core/calibrate/step_fit.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/input/document.h"
#include "core/measure/evaluate_strategy.h"
#include "core/measure/metrics.h"
#include "core/measure/study_calibration.h"
#include "core/measure/uncertainty.h"
#include "core/run/executor.h"
#include "core/run/interference.h"
#include "core/scenario/cluster.h"

namespace syncline::calibrate {
namespace {

// What a row is off by besides: the model of a step errs by 1 % in the median and by 4 % at the
// 90th percentile of live runs, and a measured median by about as much.
constexpr double kRowSpread = 0.02;
constexpr double kOverheadShare = 0.01;  // of a step: how much overhead is to be expected

std::vector<PosteriorAxis> axes_of(const Cluster& cluster, Seconds step) {
  const OverlapPrior estimate = overlap_estimate(cluster);
  const double below = -std::log(estimate.least) / measure::kHeldDeviations;
  const double above = std::log(estimate.most) / measure::kHeldDeviations;
  std::vector<PosteriorAxis> axes;
  if (estimate.likely.slowdown > 0 && above > 0) {
    axes.push_back({PosteriorAxis::What::kSlowdown, estimate.likely.slowdown, below, above});
  }
  if (estimate.likely.delay > 0 && above > 0) {
    axes.push_back({PosteriorAxis::What::kDelay, estimate.likely.delay, below, above});
  }
  axes.push_back({PosteriorAxis::What::kOverhead, cluster.device.data_parallel_overhead, 1, 1,
                  kOverheadShare * step});
  return axes;
}

Seconds mean_step(const std::vector<MeasuredStep>& rows) {
  Seconds sum = 0;
  for (const auto& row : rows) sum += row.step;
  return sum / static_cast<double>(rows.size());
}

}  // namespace

double PosteriorAxis::value(double x) const {
  return linear() ? std::max(0.0, centre + scale * x) : centre * std::exp(x);
}

double PosteriorAxis::penalty(double x) const {
  if (linear()) return std::copysign(std::sqrt(2 * std::log1p(x * x)), x);
  return x / (x < 0 ? below : above);
}

double PosteriorAxis::precision(double x, bool lower) const {
  if (linear()) return 1 / (1 + x * x);
  return 1 / ((lower ? below : above) * (lower ? below : above));
}

double PosteriorAxis::least() const { return linear() ? -centre / scale : -4; }

double PosteriorAxis::most() const { return linear() ? 0.5 / kOverheadShare : 3; }

StepPosterior::StepPosterior(StepModel& model, std::vector<MeasuredStep> rows)
    : model_(model), rows_(std::move(rows)), axes_(axes_of(model.cluster(), mean_step(rows_))) {}

Losses StepPosterior::losses(const std::vector<double>& place) const {
  Losses losses{overlap_estimate(model_.cluster()).likely, 0};
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    const double value = axes_[i].value(place[i]);
    switch (axes_[i].what) {
      case PosteriorAxis::What::kSlowdown:
        losses.overlap.collective_slowdown *= value / losses.overlap.slowdown;
        losses.overlap.slowdown = value;
        break;
      case PosteriorAxis::What::kDelay:
        losses.overlap.delay = value;
        break;
      case PosteriorAxis::What::kOverhead:
        losses.overhead = value;
    }
  }
  return losses;
}

// Step times have kinks, at which a descent may stop: of several descents, the best.
std::vector<double> StepPosterior::likeliest() const {
  std::vector<double> best;
  double least = 0;
  for (const double logarithm : {0.0, -1.2, 1.2}) {
    for (const double overhead : {0.0, 3.0}) {
      std::vector<Calibration::Parameter> parameters;
      for (const auto& axis : axes_) {
        const double start = axis.linear() ? overhead : logarithm;
        parameters.push_back({"", start, axis.least(), axis.most()});
      }
      auto found = measure::fit_parameters(
          parameters, [this](const std::vector<double>& place) { return residuals(place); });
      double sum = 0;
      for (const double miss : residuals(found)) sum += miss * miss;
      if (!best.empty() && sum >= least * (1 - 1e-9)) continue;
      best = std::move(found);
      least = sum;
    }
  }
  return best;
}

Eigen::MatrixXd StepPosterior::information(const std::vector<double>& place) const {
  constexpr double kStep = 0.1;  // looks across kinks
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

Eigen::MatrixXd StepPosterior::covariance(const Eigen::MatrixXd& information,
                                          const std::vector<double>& place, bool lower) const {
  Eigen::MatrixXd all = information;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    const auto at = static_cast<Eigen::Index>(i);
    all(at, at) += axes_[i].precision(place[i], lower);
  }
  return all.inverse();
}

std::vector<double> StepPosterior::misses(const std::vector<double>& place) const {
  const Losses lost = losses(place);
  std::vector<double> misses;
  for (const auto& row : rows_) {
    misses.push_back(std::log(model_.step(row.key, lost) / row.step) / kRowSpread);
  }
  return misses;
}

std::vector<double> StepPosterior::residuals(const std::vector<double>& place) const {
  auto list = misses(place);
  for (std::size_t i = 0; i < axes_.size(); ++i) list.push_back(axes_[i].penalty(place[i]));
  return list;
}

StepModel::StepModel(const input::Document& document)
    : document_(document),
      scenario_(
          measure::at_point(document, sweep_points(input::parse_scenario(document)).front())) {}

Seconds StepModel::step(const measure::RowKey& key, const Losses& losses) {
  PosteriorPoint& point = point_of(key);
  Device& device = point.scenario.cluster.device;
  device.overlap = losses.overlap;
  device.data_parallel_overhead = losses.overhead;
  Seconds sum = 0;
  double steps = 0;
  measure::for_each_phase(
      point.scenario, *find_strategy(point.scenario, key.strategy), point.model->traits(),
      [&](measure::TrainingStretch& phase) {
        const plan::Plan plan = run::with_interference(std::move(phase.plan), device, *point.cache);
        const auto outcome = point.model->run(plan, {}, phase.periods);
        sum += phase.steps * measure::step_time_of(plan, outcome.timeline, phase.warmup);
        steps += phase.steps;
      });
  return sum / steps;
}

double StepModel::samples(const measure::RowKey& key) {
  const Scenario& scenario = point_of(key).scenario;
  return static_cast<double>(samples_of(scenario.workload)) * scenario.cluster.ranks();
}

StepModel::PosteriorPoint& StepModel::point_of(const measure::RowKey& key) {
  const auto known = std::find_if(points_.begin(), points_.end(), [&](const PosteriorPoint& point) {
    return point.values == key.point;
  });
  if (known != points_.end()) return *known;
  points_.push_back({key.point, measure::at_point(document_, key.point), nullptr, nullptr});
  PosteriorPoint& point = points_.back();
  // Costs depend on the network alone, which is the same whatever the device loses.
  point.cache = std::make_shared<collective::CostCache>(point.scenario.cluster);
  point.model = run::model_executor_on(point.cache);
  return point;
}

}  // namespace syncline::calibrate
