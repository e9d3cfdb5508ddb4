#include "reports/provenance.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "reports/format.h"

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
  // The fit itself runs on the model, whichever executor prices the rows
  // (core/measure/study_calibration.h).
  const std::string by = report.fitted.empty() ? "" : " with the model executor";
  return text + "; " + what + " calibrated" + by + " on the " + plural(rows, "published row") +
         " marked calibrated.";
}

std::string accuracy_sentence(const measure::Report& report) {
  if (report.inexact.empty()) return {};
  const bool one = report.inexact.size() == 1;
  return join_and(report.inexact) + (one ? " changes" : " change") +
         " the training itself (sparser, coarser or rarer exchange): what that does to accuracy is "
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

}  // namespace syncline::reports
