#include "core/measure/study.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/measure/scenario_fit.h"
#include "core/plan/planner.h"

namespace syncline {
namespace {

// How many periods are run, and how many of the first are dropped.
struct Periods {
  int all = 3;
  int warmup = 1;
};

// Without jitter every period after the first is alike. With jitter the simulation averages about
// kJitteredSteps steps; the model knows the expectation in closed form.
Periods periods_for(const Scenario& scenario, const Plan& plan, std::string_view executor) {
  constexpr int kJitteredSteps = 256;
  Periods periods;
  // Where steps overlap the first ones are not yet alike: the slope over some later ones.
  if (crosses_steps(plan)) {
    periods.warmup = executor == "sim" ? 3 : 8;
    periods.all = 2 * periods.warmup;
  }
  if (executor == "sim" && scenario.cluster.jitter.kind != Jitter::Kind::kNone) {
    periods.all = periods.warmup + std::max(8, kJitteredSteps / plan.steps);
  }
  periods.warmup = scenario.simulation.warmup.value_or(periods.warmup);
  periods.all = scenario.simulation.periods.value_or(std::max(periods.all, periods.warmup + 1));
  periods.warmup = std::min(periods.warmup, periods.all - 1);
  return periods;
}

std::vector<std::pair<std::int64_t, double>> sizes_of(const std::vector<Bucket>& buckets) {
  std::vector<std::pair<std::int64_t, double>> sizes;
  for (const auto& bucket : buckets) {
    sizes.emplace_back(static_cast<std::int64_t>(bucket.tensors.size()),
                       static_cast<double>(bucket.bytes) / static_cast<double>(kMiB));
  }
  return sizes;
}

const Strategy& strategy_named(const Scenario& scenario, const std::string& name) {
  const auto it = std::find_if(scenario.strategies.begin(), scenario.strategies.end(),
                               [&](const Strategy& s) { return s.name == name; });
  return *it;
}

// The published figure of a row: all of the published sweep values must be the row's.
std::optional<Published> published_for(const Scenario& scenario, const std::string& strategy,
                                       const SweepPoint& point) {
  for (const auto& row : scenario.published) {
    const bool same = row.strategy == strategy &&
                      std::all_of(row.sweep.begin(), row.sweep.end(), [&](const auto& wanted) {
                        return std::find(point.begin(), point.end(), wanted) != point.end();
                      });
    if (same) return row;
  }
  return std::nullopt;
}

// Relative error of a prediction against the first figure that was published for it.
std::optional<double> relative_error(const Row& row) {
  if (!row.published) return std::nullopt;
  const Published& p = *row.published;
  if (p.step_time) return row.metrics.step_time / *p.step_time - 1;
  if (p.throughput) return row.metrics.throughput / *p.throughput - 1;
  if (p.speedup) return row.speedup / *p.speedup - 1;
  if (p.collectives) return row.metrics.collectives / static_cast<double>(*p.collectives) - 1;
  return std::nullopt;
}

Scenario at_point(Document document, const SweepPoint& point) {
  for (const auto& [path, value] : point) set_key(document, path, value);
  try {
    return parse_scenario(document);
  } catch (const InputError& error) {
    std::string where;
    for (const auto& [path, value] : point) {
      where += (where.empty() ? "" : ", ") + path + " = " + plain_text(value);
    }
    if (where.empty()) throw;
    throw InputError(std::string(error.what()) + " (at sweep point " + where + ")");
  }
}

// Rows of one sweep point, for the strategies asked for and the baseline that they are compared to.
class PointStudy {
 public:
  PointStudy(const Document& document, const SweepPoint& point, const ExecutorFactory& factory)
      : point_(point), scenario_(at_point(document, point)), book_(scenario_.cluster) {
    executor_ = factory({scenario_.cluster, scenario_.simulation, scenario_.seed});
  }

  const Scenario& scenario() const { return scenario_; }

  Row row(const std::string& name, Traced* traced) {
    Priced priced = price_strategy(scenario_, strategy_named(scenario_, name), *executor_, book_);
    Row row;
    row.strategy = name;
    row.executor = std::string(executor_->name());
    row.sweep = point_;
    row.metrics = priced.metrics;
    row.buckets = sizes_of(priced.plan.buckets);
    if (name == scenario_.baseline) baseline_ = row.metrics.step_time;
    if (!baseline_) {
      const auto& strategy = strategy_named(scenario_, scenario_.baseline);
      baseline_ = price_strategy(scenario_, strategy, *executor_, book_).metrics.step_time;
    }
    row.speedup = *baseline_ / row.metrics.step_time;
    row.published = published_for(scenario_, name, point_);
    if (const auto error = relative_error(row)) row.error_percent = *error * 100;
    if (traced != nullptr) *traced = {name, std::move(priced.plan), std::move(priced.timeline)};
    return row;
  }

 private:
  SweepPoint point_;
  Scenario scenario_;
  PriceBook book_;
  std::unique_ptr<Executor> executor_;
  std::optional<Seconds> baseline_;
};

// A row by its place: what a calibration fits and leaves out.
struct RowKey {
  SweepPoint point;
  std::string strategy;
};

class Fit {
 public:
  Fit(const Document& document, const Scenario& scenario)
      : document_(document), scenario_(scenario) {
    for (const auto& point : sweep_points(scenario)) {
      for (const auto& strategy : scenario.strategies) {
        const auto published = published_for(scenario, strategy.name, point);
        if (!published) continue;
        if (published->calibrated) used_.push_back({point, strategy.name});
      }
    }
  }

  const std::vector<RowKey>& used() const { return used_; }

  // Fits all calibrated rows but those in `left_out`.
  std::vector<Fitted> without(const std::function<bool(const RowKey&)>& left_out) const {
    std::vector<RowKey> keys;
    std::copy_if(used_.begin(), used_.end(), std::back_inserter(keys),
                 [&](const RowKey& key) { return !left_out(key); });
    const auto& parameters = scenario_.calibration.parameters;
    if (keys.size() < parameters.size()) {
      throw InputError(document_.file + ": calibration.leave_out: only " +
                       std::to_string(keys.size()) + " rows are left to fit " +
                       std::to_string(parameters.size()) + " parameters");
    }
    const auto values = fit_parameters(
        parameters, [&](const std::vector<double>& trial) { return errors(named(trial), keys); });
    return named(values);
  }

  std::vector<Fitted> named(const std::vector<double>& values) const {
    std::vector<Fitted> fitted;
    for (std::size_t i = 0; i < values.size(); ++i) {
      fitted.push_back({scenario_.calibration.parameters[i].path, values[i]});
    }
    return fitted;
  }

  Document with(const std::vector<Fitted>& fitted) const {
    Document document = document_;
    for (const auto& [path, value] : fitted) set_key(document, path, Json(value));
    return document;
  }

 private:
  std::vector<double> errors(const std::vector<Fitted>& fitted,
                             const std::vector<RowKey>& keys) const {
    const Document document = with(fitted);
    std::vector<double> list;
    std::unique_ptr<PointStudy> study;
    const SweepPoint* point = nullptr;
    for (const auto& key : keys) {
      if (point == nullptr || *point != key.point) {
        study = std::make_unique<PointStudy>(document, key.point, make_model_executor);
        point = &key.point;
      }
      list.push_back(relative_error(study->row(key.strategy, nullptr)).value_or(0));
    }
    return list;
  }

  const Document& document_;
  const Scenario& scenario_;
  std::vector<RowKey> used_;
};

// The groups of rows that a calibration leaves out in turn, each with its name.
std::vector<std::pair<std::string, std::function<bool(const RowKey&)>>> folds_of(
    const Scenario& scenario, const std::vector<RowKey>& used) {
  std::vector<std::pair<std::string, std::function<bool(const RowKey&)>>> folds;
  const std::string& what = scenario.calibration.leave_out;
  if (what.empty()) return folds;
  if (what == "row") {
    for (const auto& key : used) {
      std::string name = key.strategy;
      for (const auto& [path, value] : key.point) name += ", " + path + " = " + plain_text(value);
      folds.emplace_back(name, [key](const RowKey& other) {
        return other.strategy == key.strategy && other.point == key.point;
      });
    }
    return folds;
  }
  for (const auto& [path, values] : scenario.sweep) {
    if (path != what) continue;
    for (const auto& value : values) {
      const std::pair<std::string, Json> wanted{path, value};
      folds.emplace_back(path + " = " + plain_text(value), [wanted](const RowKey& other) {
        return std::find(other.point.begin(), other.point.end(), wanted) != other.point.end();
      });
    }
  }
  return folds;
}

void calibrate(Document& document, const Scenario& scenario, const StudyOptions& options,
               Report& report) {
  const Fit fit(document, scenario);
  report.fitted = fit.without([](const RowKey&) { return false; });
  for (const auto& [name, left_out] : folds_of(scenario, fit.used())) {
    if (options.interrupted()) return;
    Split split;
    split.left_out = name;
    split.parameters = fit.without(left_out);
    const Document refit = fit.with(split.parameters);
    for (const auto& key : fit.used()) {
      if (!left_out(key)) continue;
      Row row = PointStudy(refit, key.point, options.make_executor).row(key.strategy, nullptr);
      row.published->calibrated = false;
      split.rows.push_back(std::move(row));
    }
    report.splits.push_back(std::move(split));
  }
  document = fit.with(report.fitted);
}

void add_left_out_errors(Report& report) {
  for (const auto& split : report.splits) {
    for (const auto& left : split.rows) {
      for (auto& row : report.rows) {
        if (row.strategy == left.strategy && row.sweep == left.sweep) {
          row.left_out_error_percent = left.error_percent;
        }
      }
    }
  }
}

std::vector<std::string> sources_of(const Scenario& scenario) {
  std::vector<std::string> sources;
  const auto add = [&](const std::string& source) {
    if (!source.empty() && std::find(sources.begin(), sources.end(), source) == sources.end()) {
      sources.push_back(source);
    }
  };
  add(scenario.workload.source);
  add(scenario.cluster.source);
  for (const auto& row : scenario.published) add(row.source);
  return sources;
}

}  // namespace

Priced price_strategy(const Scenario& scenario, const Strategy& strategy, Executor& executor,
                      PriceBook& book) {
  Priced priced;
  std::vector<WeightedMetrics> phases;
  for (const auto& phase : training_phases(strategy, scenario.training)) {
    Plan plan = make_plan(scenario.workload, scenario.cluster, strategy, phase.point);
    const Periods periods = periods_for(scenario, plan, executor.name());
    Outcome outcome = executor.run(plan, {}, periods.all);
    phases.push_back({measure(plan, scenario.workload, outcome.timeline, periods.warmup, book),
                      static_cast<double>(phase.steps)});
    if (phases.size() > 1) continue;
    priced.plan = std::move(plan);
    priced.timeline = std::move(outcome.timeline);
  }
  priced.metrics = phases.size() == 1
                       ? phases.front().metrics
                       : mean_of(phases, scenario.workload.batch * scenario.cluster.ranks());
  return priced;
}

Report run_study(const Document& original, const StudyOptions& options) {
  Document document = original;
  const Scenario scenario = parse_scenario(document);
  Report report;
  report.scenario = scenario.name;
  report.about = scenario.about;
  report.workload = scenario.workload.name;
  report.cluster = scenario.cluster.name;
  report.executor = options.executor;
  report.baseline = scenario.baseline;
  report.seed = scenario.seed;
  report.sources = sources_of(scenario);
  for (const auto& strategy : scenario.strategies) {
    if (!strategy.compression.codec.empty() || strategy.local_sgd.enabled) {
      report.inexact.push_back(strategy.name);
    }
  }
  report.traced_workload = scenario.workload;

  const auto points = sweep_points(scenario);
  const std::size_t wanted = points.size() * scenario.strategies.size();
  // Every point is judged before the first is priced: a mistake in the last one costs no time.
  for (const auto& point : points) at_point(document, point);
  options.judged();
  if (!scenario.calibration.parameters.empty()) calibrate(document, scenario, options, report);

  for (const auto& point : points) {
    PointStudy study(document, point, options.make_executor);
    for (const auto& strategy : scenario.strategies) {
      if (options.interrupted()) {
        report.complete = false;
        add_left_out_errors(report);
        return report;
      }
      Traced traced;
      const bool trace = options.trace && &point == &points.front();
      report.rows.push_back(study.row(strategy.name, trace ? &traced : nullptr));
      if (trace) report.traced.push_back(std::move(traced));
      options.progress(report.rows.size(), wanted);
    }
  }
  add_left_out_errors(report);
  return report;
}

}  // namespace syncline
