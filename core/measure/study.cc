#include "core/measure/study.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "core/error.h"
#include "core/input/document.h"
#include "core/input/read_scenario.h"
#include "core/json/text.h"
#include "core/measure/row_bytes.h"
#include "core/measure/scenario_fit.h"
#include "core/plan/compute_fusion.h"
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

// Whether a row's sweep point has all of the values in `part`.
bool lies_at(const SweepPoint& point, const SweepPoint& part) {
  return std::all_of(part.begin(), part.end(), [&](const auto& wanted) {
    return std::find(point.begin(), point.end(), wanted) != point.end();
  });
}

// The published figure of a row: all of the published sweep values must be the row's.
std::optional<Published> published_for(const Scenario& scenario, const std::string& strategy,
                                       const SweepPoint& point) {
  for (const auto& row : scenario.published) {
    if (row.strategy == strategy && lies_at(point, row.sweep)) return row;
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

// A row by its place: what a calibration fits and leaves out, and what is priced elsewhere.
struct RowKey {
  SweepPoint point;
  std::string strategy;
};

std::string name_of(const RowKey& key) {
  std::string name = key.strategy;
  for (const auto& [path, value] : key.point) name += ", " + path + " = " + plain_text(value);
  return name;
}

// What of a sweep point is fitted on its own.
SweepPoint part_of(const SweepPoint& point, const Calibration& calibration) {
  const auto& each = calibration.each;
  SweepPoint part;
  std::copy_if(point.begin(), point.end(), std::back_inserter(part), [&](const auto& value) {
    return std::find(each.begin(), each.end(), value.first) != each.end();
  });
  return part;
}

// The parts of the sweep that are fitted on their own; one empty part where all is one fit.
std::vector<SweepPoint> parts_of(const Scenario& scenario) {
  std::vector<SweepPoint> parts;
  for (const auto& point : sweep_points(scenario)) {
    const SweepPoint part = part_of(point, scenario.calibration);
    if (std::find(parts.begin(), parts.end(), part) == parts.end()) parts.push_back(part);
  }
  return parts;
}

// The document with the fitted values that hold at a sweep point.
Document with_fitted(Document document, const std::vector<Fitted>& fitted,
                     const SweepPoint& point) {
  for (const auto& parameter : fitted) {
    if (lies_at(point, parameter.at)) set_key(document, parameter.path, Json(parameter.value));
  }
  return document;
}

// Fits the calibrated rows of one part of the sweep.
class Fit {
 public:
  Fit(const Document& document, const Scenario& scenario, SweepPoint part)
      : document_(document), scenario_(scenario), part_(std::move(part)) {
    for (const auto& point : sweep_points(scenario)) {
      if (!lies_at(point, part_)) continue;
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
      std::string where;
      for (const auto& [path, value] : part_) where += " at " + path + " = " + plain_text(value);
      throw InputError(document_.file + ": calibration: only " + std::to_string(keys.size()) +
                       " calibrated rows are there" + where + " to fit " +
                       std::to_string(parameters.size()) + " parameters" +
                       (keys.size() < used_.size() ? " once some are left out" : ""));
    }
    const auto values = fit_parameters(
        parameters, [&](const std::vector<double>& trial) { return errors(named(trial), keys); });
    return named(values);
  }

  std::vector<Fitted> named(const std::vector<double>& values) const {
    std::vector<Fitted> fitted;
    for (std::size_t i = 0; i < values.size(); ++i) {
      fitted.push_back({scenario_.calibration.parameters[i].path, values[i], part_});
    }
    return fitted;
  }

 private:
  std::vector<double> errors(const std::vector<Fitted>& fitted,
                             const std::vector<RowKey>& keys) const {
    std::vector<double> list;
    std::unique_ptr<PointStudy> study;
    const SweepPoint* point = nullptr;
    for (const auto& key : keys) {
      if (point == nullptr || *point != key.point) {
        study = std::make_unique<PointStudy>(with_fitted(document_, fitted, key.point), key.point,
                                             make_model_executor);
        point = &key.point;
      }
      list.push_back(relative_error(study->row(key.strategy, nullptr)).value_or(0));
    }
    return list;
  }

  const Document& document_;
  const Scenario& scenario_;
  SweepPoint part_;
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
      folds.emplace_back(name_of(key), [key](const RowKey& other) {
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

void calibrate(const Document& document, const Scenario& scenario, const StudyOptions& options,
               Report& report) {
  for (const auto& part : parts_of(scenario)) {
    const Fit fit(document, scenario, part);
    if (fit.used().empty()) continue;  // nothing was published for it: the start values stand
    const auto fitted = fit.without([](const RowKey&) { return false; });
    report.fitted.insert(report.fitted.end(), fitted.begin(), fitted.end());
    for (const auto& [name, left_out] : folds_of(scenario, fit.used())) {
      if (options.interrupted()) return;
      Split split;
      split.left_out = name;
      split.parameters = fit.without(left_out);
      for (const auto& key : fit.used()) {
        if (!left_out(key)) continue;
        PointStudy study(with_fitted(document, split.parameters, key.point), key.point,
                         options.make_executor);
        Row row = study.row(key.strategy, nullptr);
        row.published->calibrated = false;
        split.rows.push_back(std::move(row));
      }
      report.splits.push_back(std::move(split));
    }
  }
}

// The rows of `keys`, priced by options.spread. What pricing found out travels as bytes; what the
// document knows is put beside it here.
std::vector<Row> spread_rows(const Document& document, const Scenario& scenario,
                             const std::vector<Fitted>& fitted, const std::vector<RowKey>& keys,
                             std::size_t rows_before, const StudyOptions& options) {
  // Each process keeps the point at hand: its rows come one after the other.
  std::unique_ptr<PointStudy> study;
  const SweepPoint* point = nullptr;
  const auto price = [&](std::size_t index) {
    const RowKey& key = keys[index];
    if (point == nullptr || *point != key.point) {
      study = std::make_unique<PointStudy>(with_fitted(document, fitted, key.point), key.point,
                                           options.make_executor);
      point = &key.point;
    }
    return row_bytes(study->row(key.strategy, nullptr));
  };
  JobHooks hooks;
  hooks.interrupted = options.interrupted;
  hooks.progress = [&](std::size_t done, std::size_t wanted) {
    options.progress(rows_before + done, rows_before + wanted);
  };
  hooks.name = [&](std::size_t index) { return name_of(keys[index]); };
  std::vector<Row> rows;
  for (const auto& bytes : options.spread(keys.size(), price, hooks)) {
    const RowKey& key = keys[rows.size()];
    Row row = row_from_bytes(bytes);
    row.strategy = key.strategy;
    row.sweep = key.point;
    row.published = published_for(scenario, key.strategy, key.point);
    if (const auto error = relative_error(row)) row.error_percent = *error * 100;
    rows.push_back(std::move(row));
  }
  return rows;
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
  const auto fused =
      fused_workload(scenario.workload, scenario.cluster.device, strategy.compute_fusion);
  const Workload& workload = fused ? *fused : scenario.workload;
  for (const auto& phase : training_phases(strategy, scenario.training)) {
    Plan plan = make_plan(workload, scenario.cluster, strategy, phase.point);
    const Periods periods = periods_for(scenario, plan, executor.name());
    Outcome outcome = executor.run(plan, {}, periods.all);
    phases.push_back({measure(plan, workload, outcome.timeline, periods.warmup, book),
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

Document calibrated(const Document& document) {
  const Scenario scenario = parse_scenario(document);
  if (scenario.calibration.parameters.empty()) return document;
  const SweepPoint first = sweep_points(scenario).front();
  const SweepPoint part = part_of(first, scenario.calibration);
  const Fit fit(document, scenario, part);
  if (fit.used().empty()) return document;
  return with_fitted(document, fit.without([](const RowKey&) { return false; }), first);
}

Report run_study(const Document& document, const StudyOptions& options) {
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
  report.out_of_range = scenario.calibration.out_of_range;
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

  std::vector<RowKey> elsewhere;
  for (const auto& point : points) {
    // What is traced is priced here: plans and timelines do not travel.
    if (options.spread && !(options.trace && &point == &points.front())) {
      for (const auto& strategy : scenario.strategies) elsewhere.push_back({point, strategy.name});
      continue;
    }
    PointStudy study(with_fitted(document, report.fitted, point), point, options.make_executor);
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
  if (!elsewhere.empty()) {
    auto rows =
        spread_rows(document, scenario, report.fitted, elsewhere, report.rows.size(), options);
    std::move(rows.begin(), rows.end(), std::back_inserter(report.rows));
    report.complete = report.rows.size() == wanted;
  }
  add_left_out_errors(report);
  return report;
}

}  // namespace syncline
