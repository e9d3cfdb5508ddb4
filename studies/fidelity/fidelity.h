// How far to trust a prediction: published tables against ours, row by row, with the rows that were
// used to fit kept apart from those that were predicted.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/units.h"
#include "studies/fidelity/validation.h"
#include "studies/rows/report.h"

namespace syncline::measure {

// Absolute errors in percent. The 90th percentile lies between ranks, on the straight line.
struct ErrorSummary {
  std::size_t rows = 0;
  double median = 0;
  double p90 = 0;
  double worst = 0;
  double mean_log = 0;  // of |log(predicted / measured)|
};

// Nothing for no rows. The signs of `errors` do not matter.
std::optional<ErrorSummary> summary_of(const std::vector<double>& errors);

// Whether an 80 % interval held what was measured, and how wide it was: percent that its upper end
// lies above the prediction.
struct IntervalRow {
  double width = 0;
  bool held = false;
};

// Of several intervals: how many held, in percent, and the median width.
struct IntervalSummary {
  double held = 0;
  double width = 0;
};

// One published table and how wrong we are about it.
struct FidelityTable {
  std::string set;
  std::string name;
  std::string file;
  // (predicted / measured - 1) * 100 of each row.
  std::vector<double> calibrated;  // rows that were used to fit
  std::vector<double> predicted;   // rows that were not, or that were left out in turn
  // Why the forecasts leave what was calibrated; empty where they do not.
  std::string out_of_range;
  // Of the predicted rows, where the prediction came with an interval.
  std::vector<IntervalRow> intervals = {};
  // Of networks that nobody measured, from their data sheets and what other sites say: no part of
  // what is said of all tables.
  bool by_prior = false;
};

// The published rows of a study: a row that was left out in turn counts as calibrated (its error in
// the full fit) and as predicted (its error when it was left out).
FidelityTable table_of(const Report& report);

// Nothing for no rows.
std::optional<IntervalSummary> interval_summary(const std::vector<IntervalRow>& rows);

// All predicted rows of the tables whose forecasts stay in range.
std::optional<ErrorSummary> overall(const std::vector<FidelityTable>& tables);

// The reports that `syncline validate -o` left: predictions and measurements of live runs, as rows
// of one table and as tables of the fidelity page.

using LiveFile = Validation;

// Throws InputError for a file that is not such a report.
LiveFile read_validation(const std::string& file);

// Every row was predicted before it was measured.
FidelityTable table_of(const LiveFile& live);

}  // namespace syncline::measure
