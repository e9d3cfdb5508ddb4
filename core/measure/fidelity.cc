#include "core/measure/fidelity.h"

#include <cmath>

#include "core/statistics.h"

namespace syncline::measure {
std::optional<ErrorSummary> summary_of(const std::vector<double>& errors) {
  if (errors.empty()) return std::nullopt;
  std::vector<double> sizes;
  for (const double error : errors) sizes.push_back(std::fabs(error));
  return ErrorSummary{sizes.size(), percentile(sizes, 0.5), percentile(sizes, 0.9),
                      percentile(sizes, 1)};
}

FidelityTable table_of(const Report& report) {
  FidelityTable table;
  table.name = report.scenario;
  table.out_of_range = report.out_of_range;
  for (const auto& row : report.rows) {
    if (!row.published || !row.error_percent || is_trivial(row, report)) continue;
    (row.published->calibrated ? table.calibrated : table.predicted).push_back(*row.error_percent);
    if (row.left_out_error_percent) table.predicted.push_back(*row.left_out_error_percent);
  }
  return table;
}

std::optional<ErrorSummary> overall(const std::vector<FidelityTable>& tables) {
  std::vector<double> errors;
  for (const auto& table : tables) {
    if (!table.out_of_range.empty()) continue;
    errors.insert(errors.end(), table.predicted.begin(), table.predicted.end());
  }
  return summary_of(errors);
}

}  // namespace syncline::measure
