// A new column: the cost of training. A field is a heading, a key, a kind and the cell of a row;
// the terminal's table, CSV and JSON all follow from it.
#include <cstdio>
#include <string>

#include "core/executor.h"
#include "formats/dialect/dialects.h"
#include "formats/input/document.h"
#include "reports/run_rows.h"
#include "studies/study/study.h"

using namespace syncline;

int main(int count, char** arguments) {
  if (count < 2) return std::fprintf(stderr, "usage: column SCENARIO\n"), 2;
  dialect::hand_in(dialect::all_dialects());
  measure::StudyOptions options;
  options.make_executor = run::make_model_executor;
  const measure::Report report = measure::run_study(input::read_document(arguments[1]), options);

  constexpr double kDollarsPerGpuSecond = 2.0 / 3600;
  constexpr double kSamples = 1e6;
  const double rate = kDollarsPerGpuSecond * static_cast<double>(report.rows.front().rate.ranks);
  auto fields = reports::run_fields(report.rows, report.baseline, reports::Column::kPrograms);
  fields.insert(
      fields.begin() + 2,
      {reports::table_column("$ per million\nsamples", "dollars_per_million_samples",
                             reports::Kind::kThroughput),
       [rate](const measure::Row& row) { return rate * kSamples / row.metrics.throughput; }});
  const reports::Table table = reports::table_of(fields, report.rows);
  std::fputs(reports::plain_grid(reports::grid_of(reports::narrow_table(table, 0))).c_str(),
             stdout);
  std::printf("\nCSV:\n%s", reports::csv_head(table).substr(0, 71).c_str());
}
