#include "core/measure/study.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/input/read_scenario.h"
#include "core/json/text.h"
#include "core/measure/remarks.h"
#include "core/measure/row_bytes.h"
#include "core/measure/row_pricer.h"
#include "core/measure/study_calibration.h"

namespace syncline::measure {
namespace {

// The rows of `keys`, priced by options.parallel_map. What pricing found out travels as bytes; what
// the document knows is put beside it here.
std::vector<Row> rows_elsewhere(const input::Document& document, const Scenario& scenario,
                                const Report& report, const std::vector<RowKey>& keys,
                                const StudyOptions& options) {
  const std::size_t rows_before = report.rows.size();
  // Of the process that prices.
  RowPricer pricer(document, report.fitted, options.make_executor, report.pinned);
  const auto price = [&](std::size_t index) { return row_bytes(pricer.price(keys[index])); };
  run::JobHooks hooks;
  hooks.interrupted = options.interrupted;
  hooks.progress = [&](std::size_t done, std::size_t wanted) {
    options.progress(rows_before + done, rows_before + wanted);
  };
  hooks.name = [&](std::size_t index) { return name_of(keys[index]); };
  std::vector<Row> rows;
  for (const auto& bytes : options.parallel_map(keys.size(), price, hooks)) {
    const RowKey& key = keys[rows.size()];
    Row row = row_from_bytes(bytes);
    row.strategy = key.strategy;
    row.sweep = key.point;
    row.published = published_for(scenario, key);
    if (const auto error = relative_error(row)) row.error_percent = *error * 100;
    rows.push_back(std::move(row));
  }
  return rows;
}

// Puts the errors of the refits beside the rows that they left out.
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

// Whether a strategy becomes rows.
bool is_priced(const Strategy& strategy, const Scenario& scenario, const StudyOptions& options) {
  const auto named = [&](const std::string& name) { return name == strategy.name; };
  return options.only.empty() || named(scenario.baseline) ||
         std::any_of(options.only.begin(), options.only.end(), named) ||
         std::any_of(scenario.published.begin(), scenario.published.end(),
                     [&](const Published& row) { return row.calibrated && named(row.strategy); });
}

// Everything that a report says besides its rows.
Report head_of(const Scenario& scenario, const StudyOptions& options) {
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
    const bool inexact = !strategy.compression.codec.empty() || strategy.local_sgd.enabled;
    if (inexact && is_priced(strategy, scenario, options)) {
      report.inexact.push_back(strategy.name);
    }
  }
  report.traced_workload = scenario.workload;
  return report;
}

// Prices rows one after the other; false where it was interrupted.
bool add_rows(const input::Document& document, const std::vector<RowKey>& keys, bool trace,
              std::size_t wanted, const StudyOptions& options, Report& report) {
  RowPricer pricer(document, report.fitted, options.make_executor, report.pinned);
  for (const auto& key : keys) {
    if (options.interrupted()) return false;
    Traced traced;
    report.rows.push_back(pricer.price(key, trace ? &traced : nullptr));
    if (trace) report.traced.push_back(std::move(traced));
    options.progress(report.rows.size(), wanted);
  }
  return true;
}

}  // namespace

Report run_study(const input::Document& document, const StudyOptions& options) {
  const Scenario scenario = input::parse_scenario(document);
  Report report = head_of(scenario, options);

  const auto points = sweep_points(scenario);
  // Every point is validated before the first is priced: a mistake in the last one costs no time.
  report.remarks = remarks_of(document, points, options.interrupted);
  report.complete = !options.interrupted();
  if (!report.complete) return report;
  options.judged();
  if (!scenario.calibration.parameters.empty()) {
    calibrate_study(document, scenario, options.make_executor, options.interrupted, report);
  }

  // What is traced is priced here: plans and timelines do not travel. The rest goes where the
  // options say.
  std::vector<RowKey> traced;
  std::vector<RowKey> others;
  for (const auto& point : points) {
    auto& keys = options.trace && &point == &points.front() ? traced : others;
    for (const auto& strategy : scenario.strategies) {
      if (is_priced(strategy, scenario, options)) keys.push_back({point, strategy.name});
    }
  }
  const std::size_t wanted = traced.size() + others.size();
  report.complete = add_rows(document, traced, true, wanted, options, report);
  if (report.complete && !options.parallel_map) {
    report.complete = add_rows(document, others, false, wanted, options, report);
  } else if (report.complete && !others.empty()) {
    auto rows = rows_elsewhere(document, scenario, report, others, options);
    std::move(rows.begin(), rows.end(), std::back_inserter(report.rows));
    report.complete = report.rows.size() == wanted;
  }
  add_left_out_errors(report);
  return report;
}

}  // namespace syncline::measure
