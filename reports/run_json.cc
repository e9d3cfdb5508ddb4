#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "reports/figures.h"
#include "reports/format.h"
#include "reports/run_report.h"

namespace syncline::reports {
namespace {

std::size_t calibrated_rows(const measure::Report& report) {
  return static_cast<std::size_t>(std::count_if(
      report.rows.begin(), report.rows.end(),
      [](const measure::Row& row) { return row.published && row.published->calibrated; }));
}

// "2 rows used for calibration, 0.4 % off in the mean and 0.9 % at most"
void add_group(std::vector<std::string>& groups, const std::vector<double>& errors,
               std::string_view what) {
  if (errors.empty()) return;
  double sum = 0, most = 0;
  for (const double error : errors) {
    sum += std::fabs(error);
    most = std::max(most, std::fabs(error));
  }
  std::string text = plural(errors.size(), "row") + " " + std::string(what) + ", ";
  const std::string mean = share_text(sum / static_cast<double>(errors.size()));
  text += mean + " off";
  if (share_text(most) != mean) text += " in the mean and " + share_text(most) + " at most";
  groups.push_back(text);
}

Json parameters_json(const std::vector<measure::Fitted>& parameters) {
  Json object = Json::object();
  for (const auto& fitted : parameters) object[fitted.path] = exact(fitted.value);
  return object;
}

// One object, or one for each part of the sweep that was fitted on its own.
Json calibration_json(const std::vector<measure::Fitted>& fitted) {
  if (fitted.front().at.empty()) return Json{{"parameters", parameters_json(fitted)}};
  Json parts = Json::array();
  for (std::size_t i = 0; i < fitted.size();) {
    std::vector<measure::Fitted> together;
    Json at = Json::object();
    for (const auto& [path, value] : fitted[i].at) at[path] = value;
    const std::size_t first = i;
    for (; i < fitted.size() && fitted[i].at == fitted[first].at; ++i) {
      together.push_back(fitted[i]);
    }
    parts.push_back(Json{{"at", at}, {"parameters", parameters_json(together)}});
  }
  return Json{{"parts", parts}};
}

Json splits_json(const std::vector<measure::Split>& splits) {
  Json list = Json::array();
  for (const auto& split : splits) {
    list.push_back(Json{{"left_out", split.left_out},
                        {"parameters", parameters_json(split.parameters)},
                        {"rows", rows_json(split.rows)}});
  }
  return list;
}

Json provenance_json(const measure::Report& report) {
  Json object = Json::object();
  object["executor"] = report.executor;
  object["baseline"] = report.baseline;
  object["workload"] = report.workload;
  object["cluster"] = report.cluster;
  object["seed"] = report.seed;
  object["sources"] = report.sources;
  if (!report.out_of_range.empty()) object["out_of_range"] = report.out_of_range;
  object["figures"] = figures_sentence(report);
  if (!report.inexact.empty()) object["accuracy"] = accuracy_sentence(report);
  return object;
}

}  // namespace

std::string figures_sentence(const measure::Report& report) {
  std::vector<std::string> executors;
  for (const auto& row : report.rows) {
    if (std::find(executors.begin(), executors.end(), row.executor) == executors.end()) {
      executors.push_back(row.executor);
    }
  }
  if (executors.empty()) executors.push_back(report.executor);
  std::string text = "All figures are predicted by the " + join_and(executors) +
                     (executors.size() == 1 ? " executor" : " executors") + ", none is measured";
  const std::size_t rows = calibrated_rows(report);
  if (rows == 0 && report.fitted.empty()) return text + ".";
  // A scenario may also carry parameters that were fitted before it was written.
  const std::string what = report.fitted.empty() ? "the scenario is"
                                                 : plural(report.fitted.size(), "parameter") +
                                                       (report.fitted.size() == 1 ? " is" : " are");
  // The fit itself runs on the model, whichever executor evaluates the rows
  // (core/measure/study_calibration.h).
  const std::string by = report.fitted.empty() ? "" : " with the model executor";
  return text + "; " + what + " calibrated" + by + " on the " + plural(rows, "published row") +
         " marked calibrated.";
}

std::string accuracy_sentence(const measure::Report& report) {
  if (report.inexact.empty()) return {};
  const bool one = report.inexact.size() == 1;
  return join_and(report.inexact) + (one ? " changes" : " change") +
         " the training itself (sparser, coarser or rarer communication): what that does to "
         "accuracy is "
         "not predicted.";
}

std::string agreement_sentence(const measure::Report& report) {
  std::vector<double> fitted, predicted, left_out;
  for (const auto& row : report.rows) {
    if (!row.published || measure::is_trivial(row, report)) continue;
    if (row.error_percent) {
      (row.published->calibrated ? fitted : predicted).push_back(*row.error_percent);
    }
    if (row.left_out_error_percent) left_out.push_back(*row.left_out_error_percent);
  }
  std::vector<std::string> groups;
  add_group(groups, fitted, "used for calibration");
  add_group(groups, predicted, "not used for calibration");
  add_group(groups, left_out, "left out of the calibration in turn");
  std::string text;
  for (const auto& group : groups) text += (text.empty() ? "" : "; ") + group;
  return text.empty() ? text : "Against published figures: " + text + ".";
}

Json json_of(const measure::Report& report) {
  Json object = Json::object();
  if (!report.complete) object["complete"] = false;
  if (!report.shortage.empty()) object["does_not_fit"] = report.shortage;
  object["rows"] = rows_json(report.rows);
  if (!report.fitted.empty()) object["calibration"] = calibration_json(report.fitted);
  if (!report.splits.empty()) object["splits"] = splits_json(report.splits);
  object["provenance"] = provenance_json(report);
  return object;
}

Answer answer_of(const measure::Report& report) {
  return {"run",
          report.scenario,
          [&] { return page_of(report); },
          [&] { return run_rows(report.rows, report.baseline); },
          [&] { return json_of(report); },
          report.warnings,
          [&] { return figures_of(report); },
          [&] { return brief_of(report); }};
}

}  // namespace syncline::reports
