// Errors of predictions: published tables against ours, row by row. Rows of the fit are separate
// from predicted ones.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/units.h"
#include "studies/fidelity/validation.h"
#include "studies/rows/report.h"

namespace syncline::measure {

// Absolute errors in percent. The 90th percentile is interpolated linearly between ranks.
struct ErrorSummary {
  std::size_t rows = 0;
  double median = 0;
  double p90 = 0;
  double worst = 0;
  double mean_log = 0;  // mean of |log(predicted / measured)|
};

// Returns a summary of the absolute errors; nullopt for no rows.
std::optional<ErrorSummary> summary_of(const std::vector<double>& errors);

// An 80 % interval: true if it held the measured time, and its width, the percent of its upper end
// above the prediction.
struct IntervalRow {
  double width = 0;
  bool held = false;
};

// Share of intervals that held, in percent, and their median width.
struct IntervalSummary {
  double held = 0;
  double width = 0;
};

// One published table and our errors on it.
struct FidelityTable {
  std::string set;
  std::string name;
  std::string file;
  // Errors (predicted / measured - 1) * 100 of each row.
  std::vector<double> calibrated;  // rows of the fit
  std::vector<double> predicted;   // rows outside the fit, or left out in turn
  // Reason why the forecasts leave the calibrated range; empty if they do not.
  std::string out_of_range;
  // Intervals of the predicted rows, if the prediction has them.
  std::vector<IntervalRow> intervals = {};
  // The networks are not measured but predicted from data sheets and other sites' logs. Totals of
  // all tables exclude them.
  bool by_prior = false;
};

// Returns the errors of a study's published rows. A row left out in turn counts as calibrated
// (error in the full fit) and as predicted (error when left out).
FidelityTable table_of(const Report& report);

// Returns the summary of intervals; nullopt for no rows.
std::optional<IntervalSummary> interval_summary(const std::vector<IntervalRow>& rows);

// Returns the summary of all predicted rows of tables with forecasts in range.
std::optional<ErrorSummary> overall(const std::vector<FidelityTable>& tables);

// Reports of `syncline validate -o`: predictions and measurements of live runs, as rows of one
// table and as tables of the fidelity page.

using LiveFile = Validation;

// Reads a report of `validate`. Throws InputError for another file.
LiveFile read_validation(const std::string& file);

// Returns the errors of a live run; all rows are predicted ones.
FidelityTable table_of(const LiveFile& live);

}  // namespace syncline::measure
