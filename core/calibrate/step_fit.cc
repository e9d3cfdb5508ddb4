// The likeliest values (maximum a posteriori) of
//   overlap_slowdown, overlap_delay_us   log-normal about what core/scenario/cluster.h believes of
//                                        the cluster, each by itself; the collective's slowdown
//                                        stays in proportion to the computation's
//   data_parallel_overhead_us            half a Cauchy distribution above what is given, as wide as
//                                        1 % of a step (Gelman, Bayesian Analysis 1(3), 2006)
// where log(predicted step / measured step) is normal. One set of values holds for all rows.
#include "core/calibrate/step_fit.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "core/digits.h"
#include "core/error.h"
#include "core/json/reader.h"
#include "core/json/text.h"
#include "core/measure/uncertainty.h"

namespace syncline::calibrate {
namespace {

constexpr double kTells = 0.01;    // information over the prior's, below which rows say nothing
constexpr double kNarrowed = 0.7;  // an interval over the prior's: what rows told of a value
constexpr double kFar = 0.06;      // a fitted row that these values do not explain
constexpr double kWorse = 0.005;   // of rows that were left out, in the median
constexpr int kStepDigits = 6;

std::string_view key_of(const PosteriorAxis& axis) {
  switch (axis.what) {
    case PosteriorAxis::What::kSlowdown:
      return "overlap_slowdown";
    case PosteriorAxis::What::kDelay:
      return "overlap_delay_us";
    case PosteriorAxis::What::kOverhead:
      break;
  }
  return "data_parallel_overhead_us";
}

double unit_of(const PosteriorAxis& axis) {
  return axis.what == PosteriorAxis::What::kSlowdown ? 1 : kMicrosecond;
}

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

// The rows whose step time was published, in that order.
std::vector<StepRow> measured_rows(StepModel& model) {
  const Scenario& scenario = model.scenario();
  const auto points = sweep_points(scenario);
  std::vector<StepRow> rows;
  for (std::size_t i = 0; i < scenario.published.size(); ++i) {
    const Published& published = scenario.published[i];
    if (!published.step_time && !published.throughput) continue;
    const auto point = std::find_if(points.begin(), points.end(), [&](const SweepPoint& one) {
      return measure::lies_at(one, published.sweep);
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

// The standard deviation of one factor on all that overlap costs, whatever the overhead is.
double common_spread(const Eigen::MatrixXd& covariance) {
  const Eigen::Index overlaps = covariance.rows() - 1;
  const Eigen::MatrixXd inverse = covariance.topLeftCorner(overlaps, overlaps).inverse();
  return 1 / std::sqrt(inverse.sum());
}

// Fills the figures in and says what the rows leave open.
void describe(const StepPosterior& posterior, const std::vector<double>& place, StepFit& fit) {
  const Eigen::MatrixXd information = posterior.information(place);
  const Eigen::MatrixXd believed = posterior.information(std::vector<double>(place.size(), 0));
  const Eigen::MatrixXd lower = posterior.covariance(information, place, true);
  const Eigen::MatrixXd upper = posterior.covariance(information, place, false);
  std::vector<std::string> silent;
  std::vector<std::string> vague;
  for (std::size_t i = 0; i < place.size(); ++i) {
    const PosteriorAxis& axis = posterior.axes()[i];
    const auto at = static_cast<Eigen::Index>(i);
    const double known = axis.precision(place[i], false);
    const double unit = unit_of(axis);
    StepFigure figure{std::string(key_of(axis)), axis.centre / unit, axis.value(place[i]) / unit};
    figure.low = axis.value(place[i] - measure::kHeldDeviations * std::sqrt(lower(at, at))) / unit;
    figure.high = axis.value(place[i] + measure::kHeldDeviations * std::sqrt(upper(at, at))) / unit;
    // Where the rows have pushed a value to nothing, it hardly matters any more how little it is.
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

// What cannot be fitted at all.
void say_what_is_fixed(const Cluster& cluster, const StepPosterior& posterior, StepFit& fit) {
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
    set("overlap_slowdown", losses.overlap.slowdown);
    set("overlap_collective_slowdown", losses.overlap.collective_slowdown);
    set("overlap_delay_us", losses.overlap.delay / kMicrosecond);
    set("overlap_spread", spread);
  }
  set("data_parallel_overhead_us", losses.overhead / kMicrosecond);
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
  std::vector<MeasuredStep> used;
  for (const auto& row : fit.rows) {
    if (row.fitted) used.push_back({row.key, row.measured});
  }
  const StepPosterior posterior(model, std::move(used));
  const auto place = posterior.likeliest();
  const Losses after = posterior.losses(place);
  const Device& device = model.cluster().device;
  for (auto& row : fit.rows) {
    row.before = model.step(row.key, {device.overlap, device.data_parallel_overhead});
    row.after = model.step(row.key, after);
  }
  describe(posterior, place, fit);
  say_what_is_fixed(model.cluster(), posterior, fit);
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
  const auto spread = [&] {
    const auto information = posterior.information(place);
    return common_spread(posterior.covariance(information, place, false));
  };
  write(document, after, posterior.axes().size() > 1 ? spread() : 0, fit);
  return fit;
}

}  // namespace syncline::calibrate
