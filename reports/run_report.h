// The answer of `syncline run`: a report as a page, as rows for spreadsheets, as JSON.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>

#include "core/json/json.h"
#include "core/measure/report.h"
#include "reports/answer.h"
#include "reports/page.h"

namespace syncline::reports {

// The rows; beside them, where somebody published figures, those and the error of the prediction
// (of the step time, else the throughput, else the speedup, else the collectives: the first that
// was published). Then what was fitted, what the table shows, and where the figures come from.
Page page_of(const measure::Report& report);

// One line a row, one column a sweep path. Figures in SI units under the names of the JSON; columns
// about published figures only where some row has them. Bucket lists and refits are in the JSON
// alone.
CsvTable csv_of(const measure::Report& report);

// The same lines one by one, of a scenario without published figures: its columns are known from
// the first row on.
class CsvRows {
 public:
  explicit CsvRows(const measure::Row& first);
  ~CsvRows();
  std::string head() const;
  std::string line(const measure::Row& row) const;

 private:
  struct Columns;
  std::unique_ptr<const Columns> columns_;
};

// Such lines on a stream, each written as a whole once its row is there: what has been done is
// read, however the program ends.
class CsvStream {
 public:
  explicit CsvStream(std::ostream& out) : out_(out) {}
  void put(const measure::Row& row);
  std::size_t rows() const { return rows_; }

 private:
  std::ostream& out_;
  std::optional<CsvRows> lines_;
  std::size_t rows_ = 0;
};

// Fields that do not apply are left out. Units are SI: seconds, bytes, samples per second; errors
// in percent.
//   complete     false where the run was interrupted, otherwise absent
//   rows         strategy, executor, sweep {path: value}, the figures of reports/fields.h; where
//                somebody published some: published {figures, buckets, use, source, note},
//                error_percent, left_out_error_percent, buckets [[tensors, MiB], ...]
//   calibration  parameters {path: value}, where some were fitted; or parts [{at, parameters}]
//                where parts of the sweep were fitted on their own
//   splits       left_out, parameters, rows: refits with something left out
//   remarks      what is allowed in the scenario and rarely meant, where there is something
//   doubts       those of them that are likely slips, where there are some
//   provenance   executor, baseline, workload, cluster, seed, sources, figures (a sentence)
Json json_of(const measure::Report& report);

// All three. The report must outlive the answer.
Answer answer_of(const measure::Report& report);

// Where the figures come from, in sentences. Which executor predicted the figures, and what they
// were fitted to.
std::string figures_sentence(const measure::Report& report);

// Which strategies change the training itself, about whose accuracy nothing is said. Empty if none.
std::string accuracy_sentence(const measure::Report& report);

// How far predictions are from published figures: those used for the fit, those not used, and each
// left out in turn. Empty where nothing was published to compare with.
std::string agreement_sentence(const measure::Report& report);

}  // namespace syncline::reports
