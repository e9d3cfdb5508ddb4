#include "studies/fidelity/fidelity.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/statistics.h"
#include "formats/input/document.h"
#include "formats/json/text.h"

namespace syncline::measure {

std::optional<ErrorSummary> summary_of(const std::vector<double>& errors) {
  if (errors.empty()) return std::nullopt;
  std::vector<double> sizes;
  double logs = 0;
  for (const double error : errors) {
    sizes.push_back(std::fabs(error));
    logs += std::fabs(std::log1p(error / 100));
  }
  return ErrorSummary{sizes.size(), percentile(sizes, 0.5), percentile(sizes, 0.9),
                      percentile(sizes, 1), logs / static_cast<double>(sizes.size())};
}

std::optional<IntervalSummary> interval_summary(const std::vector<IntervalRow>& rows) {
  if (rows.empty()) return std::nullopt;
  std::vector<double> widths;
  double held = 0;
  for (const IntervalRow& row : rows) {
    widths.push_back(row.width);
    if (row.held) held += 1;
  }
  return IntervalSummary{100 * held / static_cast<double>(rows.size()), median(std::move(widths))};
}

namespace {

// Compares a row's interval with the published figure; nullopt without a published time.
std::optional<IntervalRow> interval_row(const Row& row) {
  const Published& published = *row.published;
  const Metrics& metrics = row.metrics;
  if (row.step.high <= 0) return std::nullopt;
  const auto of = [](double value, double predicted, const Interval& interval) {
    return IntervalRow{100 * (interval.high / predicted - 1),
                       interval.low <= value && value <= interval.high};
  };
  if (published.step_time) return of(*published.step_time, metrics.step_time, row.step);
  if (published.throughput) {
    // A step has the predicted number of samples.
    const Seconds step = metrics.step_time * metrics.throughput / *published.throughput;
    return of(step, metrics.step_time, row.step);
  }
  if (published.speedup) return of(*published.speedup, row.speedup, row.gain);
  return std::nullopt;
}

[[noreturn]] void refuse(const std::string& file, const std::string& place,
                         const std::string& expected) {
  throw InputError(file + ": " + place + ": expected " + expected +
                   ", as syncline validate -o writes it");
}

std::string text_in(const Json& json, const std::string& file, const char* key) {
  if (!json.contains(key) || !json[key].is_string()) refuse(file, key, "a text");
  return json[key].get<std::string>();
}

Seconds seconds_in(const Json& json, const std::string& file, const std::string& place,
                   const char* key) {
  if (!json.contains(key) || !json[key].is_number() || json[key].get<double>() <= 0) {
    refuse(file, place + "." + key, "a number above 0");
  }
  return json[key].get<double>();
}

}  // namespace

bool is_trivial(const Row& row, const Report& report) {
  return row.strategy == report.baseline && row.published && row.published->speedup &&
         !row.published->step_time && !row.published->throughput;
}

FidelityTable table_of(const Report& report) {
  FidelityTable table;
  table.name = report.scenario;
  table.out_of_range = report.out_of_range;
  for (const auto& row : report.rows) {
    if (!row.published || !row.error_percent || is_trivial(row, report)) continue;
    (row.published->calibrated ? table.calibrated : table.predicted).push_back(*row.error_percent);
    if (row.left_out_error_percent) table.predicted.push_back(*row.left_out_error_percent);
    if (row.published->calibrated) continue;
    if (const auto interval = interval_row(row)) table.intervals.push_back(*interval);
  }
  for (const auto& split : report.splits) {
    for (const auto& row : split.rows) {
      if (!row.published || !row.error_percent) continue;
      if (const auto interval = interval_row(row)) table.intervals.push_back(*interval);
    }
  }
  return table;
}

std::optional<ErrorSummary> overall(const std::vector<FidelityTable>& tables) {
  std::vector<double> errors;
  for (const auto& table : tables) {
    if (!table.out_of_range.empty() || table.by_prior) continue;
    errors.insert(errors.end(), table.predicted.begin(), table.predicted.end());
  }
  return summary_of(errors);
}

LiveFile read_validation(const std::string& file) {
  const Json json = read_json_file(file);
  if (!json.is_object()) refuse(file, "file", "an object");
  LiveFile live;
  live.file = file;
  live.scenario = text_in(json, file, "scenario");
  live.cluster = text_in(json, file, "cluster");
  live.backend = text_in(json, file, "backend");
  live.hardware = text_in(json, file, "hardware");
  if (!json.contains("ranks") || !json["ranks"].is_number_integer()) {
    refuse(file, "ranks", "a whole number");
  }
  live.ranks = json["ranks"].get<int>();
  if (!json.contains("rows") || !json["rows"].is_array()) refuse(file, "rows", "a list");
  for (const auto& line : json["rows"]) {
    const std::string place = "rows[" + std::to_string(live.rows.size()) + "]";
    if (!line.is_object()) refuse(file, place, "an object");
    ValidatedRow& row = live.rows.emplace_back();
    row.strategy = text_in(line, file, "strategy");
    row.predicted = seconds_in(line, file, place, "predicted_s");
    row.median = seconds_in(line, file, place, "measured_median_s");
    row.p95 = seconds_in(line, file, place, "measured_p95_s");
    if (line.contains("values_match") && line["values_match"].is_boolean()) {
      row.values_match = line["values_match"].get<bool>();
    }
  }
  return live;
}

FidelityTable table_of(const LiveFile& live) {
  FidelityTable table;
  table.name = live.scenario + ", " + live.backend;
  table.file = live.file;
  for (const auto& row : live.rows) table.predicted.push_back(row.error_percent());
  return table;
}

}  // namespace syncline::measure
