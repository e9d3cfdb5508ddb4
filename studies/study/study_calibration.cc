#include "studies/study/study_calibration.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include <Eigen/Dense>
#include <unsupported/Eigen/NonLinearOptimization>
#include <unsupported/Eigen/NumericalDiff>

#include "core/base/error.h"
#include "core/executor.h"
#include "formats/input/document.h"
#include "formats/json/text.h"
#include "studies/rows/row_evaluator.h"

namespace syncline::measure {
namespace {

// Returns the values of a sweep point that have a fit of their own.
SweepPoint part_of(const SweepPoint& point, const Calibration& calibration) {
  SweepPoint part;
  std::ranges::copy_if(point, std::back_inserter(part), [&](const auto& value) {
    return std::ranges::count(calibration.each, value.first) > 0;
  });
  return part;
}

// Returns the parts of the sweep that are fitted on their own; one empty part if all is one fit.
std::vector<SweepPoint> parts_of(const Scenario& scenario) {
  std::vector<SweepPoint> parts;
  for (const auto& point : sweep_points(scenario)) {
    const SweepPoint part = part_of(point, scenario.calibration);
    if (std::ranges::count(parts, part) == 0) parts.push_back(part);
  }
  return parts;
}

// Fits the calibrated rows of one part of the sweep.
class PartFit {
 public:
  PartFit(const input::Document& document, const Scenario& scenario, SweepPoint part)
      : document_(document), scenario_(scenario), part_(std::move(part)) {
    for (const auto& point : sweep_points(scenario)) {
      if (!matches_point(point, part_)) continue;
      for (const auto& strategy : scenario.strategies) {
        const auto published = find_published(scenario, {point, strategy.name});
        if (published && published->calibrated) used_.push_back({point, strategy.name});
      }
    }
  }

  const std::vector<RowKey>& used() const { return used_; }

  // Fits all calibrated rows but those in `left_out`.
  std::vector<Fitted> without(const std::function<bool(const RowKey&)>& left_out) const {
    std::vector<RowKey> keys;
    std::ranges::remove_copy_if(used_, std::back_inserter(keys), left_out);
    const auto& parameters = scenario_.calibration.parameters;
    if (keys.size() < parameters.size()) {
      std::string where;
      for (const auto& value : part_) where += " at " + point_text({value});
      throw InputError(document_.file + ": calibration: only " + std::to_string(keys.size()) +
                       " calibrated rows are there" + where + " to fit " +
                       std::to_string(parameters.size()) + " parameters" +
                       (keys.size() < used_.size() ? " once some are left out" : ""));
    }
    const auto values = fit_parameters(
        parameters, [&](const std::vector<double>& trial) { return errors(named(trial), keys); });
    return named(values);
  }

  // Returns the errors of the predictions with these values, row by row.
  std::vector<double> errors(const std::vector<Fitted>& fitted,
                             const std::vector<RowKey>& keys) const {
    RowEvaluator evaluator(document_, fitted, run::make_model_executor, std::nullopt);
    std::vector<double> list;
    for (const auto& key : keys) list.push_back(relative_error(evaluator.cost(key)).value_or(0));
    return list;
  }

 private:
  std::vector<Fitted> named(const std::vector<double>& values) const {
    std::vector<Fitted> fitted;
    for (std::size_t i = 0; i < values.size(); ++i) {
      fitted.push_back({scenario_.calibration.parameters[i].path, values[i], part_});
    }
    return fitted;
  }

  const input::Document& document_;
  const Scenario& scenario_;
  SweepPoint part_;
  std::vector<RowKey> used_;
};

// A group of rows that is left out together, with its name.
using Fold = std::pair<std::string, std::function<bool(const RowKey&)>>;

// Returns the folds of a calibration: each row by itself, or all rows of one value of a sweep key.
std::vector<Fold> folds_of(const Scenario& scenario, const std::vector<RowKey>& used) {
  std::vector<Fold> folds;
  const std::string& what = scenario.calibration.leave_out;
  if (what.empty()) return folds;
  if (what == "row") {
    for (const auto& key : used) {
      folds.emplace_back(name_of(key), [key](const RowKey& other) {
        return other.strategy == key.strategy && other.point == key.point;
      });
    }
    return folds;
  }
  for (const auto& [path, values] : scenario.sweep) {
    if (path != what) continue;
    for (const auto& value : values) {
      const SweepPoint part{{path, value}};
      folds.emplace_back(point_text(part),
                         [part](const RowKey& other) { return matches_point(other.point, part); });
    }
  }
  return folds;
}

double sum_of_squares(const std::vector<double>& errors) {
  return std::inner_product(errors.begin(), errors.end(), errors.begin(), 0.0);
}

// Estimates the errors of the fitted keys: the spread of the errors that the fit left, one degree
// of freedom taken for each parameter.
FitErrors remaining_fit_errors(const Calibration& calibration, const std::vector<double>& errors,
                               std::size_t fitted) {
  constexpr double kNoneLeft = 0.05;  // as many rows as parameters: the fit cannot say
  const double spread =
      errors.size() > fitted
          ? std::sqrt(sum_of_squares(errors) / static_cast<double>(errors.size() - fitted))
          : kNoneLeft;
  FitErrors fit_errors;
  for (const auto& parameter : calibration.parameters) {
    const bool device = parameter.path.starts_with("cluster.device.");
    const bool cluster = parameter.path.starts_with("cluster.");
    (cluster && !device ? fit_errors.network : fit_errors.computation) = spread;
  }
  return fit_errors;
}

// Returns the angle for min + (max - min) * sin^2(angle): bounds are never left but can be reached.
double angle_of(const Calibration::Parameter& parameter, double value) {
  const double share = (value - parameter.min) / (parameter.max - parameter.min);
  // At a bound the derivative vanishes and a fit could not leave it: start a little inside.
  constexpr double kInside = 1e-4;
  return std::asin(std::sqrt(std::clamp(share, kInside, 1 - kInside)));
}

struct Problem {
  using Scalar = double;
  using InputType = Eigen::VectorXd;
  using ValueType = Eigen::VectorXd;
  using JacobianType = Eigen::MatrixXd;
  // Names that Eigen asks for.
  // NOLINTNEXTLINE(readability-identifier-naming)
  enum { InputsAtCompileTime = Eigen::Dynamic, ValuesAtCompileTime = Eigen::Dynamic };

  const std::vector<Calibration::Parameter>& parameters;
  const Residuals& residuals;
  int rows;

  int inputs() const { return static_cast<int>(parameters.size()); }
  int values() const { return rows; }

  std::vector<double> at(const Eigen::VectorXd& angles) const {
    std::vector<double> values;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const auto& parameter = parameters[i];
      const double s = std::sin(angles[static_cast<Eigen::Index>(i)]);
      values.push_back(parameter.min + (parameter.max - parameter.min) * s * s);
    }
    return values;
  }

  int operator()(const Eigen::VectorXd& angles, Eigen::VectorXd& out) const {
    std::ranges::copy(residuals(at(angles)), out.begin());
    return 0;
  }
};

}  // namespace

void calibrate_study(const input::Document& document, const Scenario& scenario,
                     const ExecutorFactory& factory, const std::function<bool()>& interrupted,
                     Report& report) {
  std::vector<double> errors;
  for (const auto& part : parts_of(scenario)) {
    const PartFit fit(document, scenario, part);
    if (fit.used().empty()) continue;  // no published figures: the start values hold
    const auto fitted = fit.without([](const RowKey&) { return false; });
    report.fitted.insert(report.fitted.end(), fitted.begin(), fitted.end());
    for (const double error : fit.errors(fitted, fit.used())) errors.push_back(error);
    report.fit_errors = remaining_fit_errors(scenario.calibration, errors, report.fitted.size());
    for (const auto& [name, left_out] : folds_of(scenario, fit.used())) {
      if (interrupted()) return;
      Split split;
      split.left_out = name;
      split.parameters = fit.without(left_out);
      RowEvaluator evaluator(document, split.parameters, factory, report.fit_errors);
      for (const auto& key : fit.used()) {
        if (!left_out(key)) continue;
        Row row = evaluator.cost(key);
        row.published->calibrated = false;
        split.rows.push_back(std::move(row));
      }
      report.splits.push_back(std::move(split));
    }
  }
  if (report.fitted.empty() || !network_fit_of(scenario)) return;
  const SweepPoint first = sweep_points(scenario).front();
  report.network =
      network_fit_of(at_point(with_fitted(without_sweep(document), report.fitted, first), first));
}

std::optional<NetworkFit> network_fit_of(const Scenario& fitted) {
  const auto& parameters = fitted.calibration.parameters;
  const auto found =
      std::ranges::find(parameters, "cluster.inter.bandwidth_gbps", &Calibration::Parameter::path);
  if (found == parameters.end() || fitted.cluster.tiers.empty()) return std::nullopt;
  const Tier& tier = fitted.cluster.tiers.back();
  return NetworkFit{found->start, tier.bandwidth / tier.nics / tier.efficiency / kGigabitPerSecond,
                    fitted.cluster.fabric, tier.nics};
}

Calibrated calibrate_document(const input::Document& document) {
  const Scenario scenario = input::parse_scenario(document);
  if (scenario.calibration.parameters.empty()) return {document, {}};
  const SweepPoint first = sweep_points(scenario).front();
  const SweepPoint part = part_of(first, scenario.calibration);
  const PartFit fit(document, scenario, part);
  if (fit.used().empty()) return {document, {}};
  const auto fitted = fit.without([](const RowKey&) { return false; });
  return {
      with_fitted(document, fitted, first),
      remaining_fit_errors(scenario.calibration, fit.errors(fitted, fit.used()), fitted.size())};
}

std::vector<double> fit_parameters(const std::vector<Calibration::Parameter>& parameters,
                                   const Residuals& residuals) {
  std::vector<double> start;
  for (const auto& parameter : parameters) start.push_back(parameter.start);
  // A solver's derivative, and its next start, ask for residuals that it has seen.
  std::map<std::vector<double>, std::vector<double>> known;
  const Residuals once = [&](const std::vector<double>& values) {
    const auto found = known.find(values);
    if (found != known.end()) return found->second;
    return known.emplace(values, residuals(values)).first->second;
  };
  const auto first = once(start);
  const Problem problem{parameters, once, static_cast<int>(first.size())};
  // Step times have kinks (a maximum of computation and communication); a derivative over a tenth
  // of a per mille of the range looks across rounding without smearing them.
  constexpr double kStep = 1e-8;
  Eigen::NumericalDiff<Problem> with_slope(problem, kStep);

  std::vector<double> best = start;
  double best_sum = sum_of_squares(first);
  // A kink can stop the descent early: begin again at its end while that gains.
  for (int round = 0; round < 8; ++round) {
    Eigen::VectorXd angles(problem.inputs());
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      angles[static_cast<Eigen::Index>(i)] = angle_of(parameters[i], best[i]);
    }
    Eigen::LevenbergMarquardt<Eigen::NumericalDiff<Problem>> solver(with_slope);
    solver.parameters.maxfev = 2000;
    solver.parameters.xtol = 1e-10;
    solver.parameters.ftol = 1e-12;
    solver.minimize(angles);
    const auto found = problem.at(angles);
    const double sum = sum_of_squares(once(found));
    if (sum >= best_sum * (1 - 1e-9)) break;
    best = found;
    best_sum = sum;
  }
  return best;
}

}  // namespace syncline::measure
