#include "core/measure/fidelity.h"

#include <algorithm>
#include <cmath>

namespace syncline {
namespace {

// The value below which a share of the sorted values lies.
double percentile(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double part = place - static_cast<double>(below);
  return sorted[below] + part * (sorted[above] - sorted[below]);
}

}  // namespace

std::optional<ErrorSummary> summary_of(const std::vector<double>& errors) {
  if (errors.empty()) return std::nullopt;
  std::vector<double> sorted;
  for (const double error : errors) sorted.push_back(std::fabs(error));
  std::sort(sorted.begin(), sorted.end());
  return ErrorSummary{sorted.size(), percentile(sorted, 0.5), percentile(sorted, 0.9),
                      sorted.back()};
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

}  // namespace syncline
