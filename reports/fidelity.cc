#include "reports/validation_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "reports/figures.h"
#include "reports/format.h"
#include "reports/table.h"

namespace syncline::reports {
namespace {

using Errors = std::optional<measure::ErrorSummary>;
using Intervals = std::optional<measure::IntervalSummary>;

template <typename Summary>
Cell figure(const std::optional<Summary>& summary, double Summary::*member) {
  return or_null(summary ? Cell((*summary).*member) : Cell());
}

Cell width_cell(const Intervals& intervals) {
  const Cell width = figure(intervals, &measure::IntervalSummary::width);
  return intervals ? shown_as(width, "+" + share_text(intervals->width)) : width;
}

// How far networks that nobody measured are off either way: shown to two digits.
Cell log_cell(const measure::FidelityTable& table, const Errors& errors) {
  if (!table.by_prior) return or_null(Cell());
  return shown_as(figure(errors, &measure::ErrorSummary::mean_log), plain_number(errors->mean_log));
}

// `logs`: of tables by prior, which that column is for.
std::vector<Column> fidelity_columns(bool logs) {
  using enum Kind;
  return columns(both("set", "set"), both("table", "name"),
                 both("calibrated\nrows", "calibrated_rows", kInteger, 5),
                 shown("median\nerror", kShare, 5), shown("worst", kShare, 5),
                 both("predicted\nrows", "predicted_rows", kInteger),
                 both("median\nerror", "median_error_percent", kShare),
                 both("90th\npercentile", "p90_error_percent", kShare, 2),
                 both("worst", "worst_error_percent", kShare),
                 both("in 80 %\ninterval", "inside_interval_percent", kShare, 3),
                 both("median\nwidth", "median_interval_percent", kShare, 4),
                 logs ? both("mean\n|log|", "mean_log_error", kShare, 6)
                      : kept("mean_log_error", Column::kJson),
                 both("in\nrange", "in_range", kFlag, 1), kept("out_of_range", Column::kJson),
                 kept("calibrated_median_error_percent", Column::kJson));
}

Table rows_of(const std::vector<measure::FidelityTable>& tables) {
  Table rows{fidelity_columns(std::ranges::any_of(tables, &measure::FidelityTable::by_prior))};
  const measure::FidelityTable* before = nullptr;
  for (const auto& table : tables) {
    const Errors fitted = measure::summary_of(table.calibrated);
    const Errors errors = measure::summary_of(table.predicted);
    const Intervals intervals = measure::interval_summary(table.intervals);
    const bool new_set = before == nullptr || before->set != table.set;
    const bool in = table.out_of_range.empty();
    const Cell fitted_median = figure(fitted, &measure::ErrorSummary::median);
    rows.add(shown_as(table.set, new_set ? table.set : ""), table.name, table.calibrated.size(),
             fitted_median, figure(fitted, &measure::ErrorSummary::worst), table.predicted.size(),
             figure(errors, &measure::ErrorSummary::median),
             figure(errors, &measure::ErrorSummary::p90),
             figure(errors, &measure::ErrorSummary::worst),
             figure(intervals, &measure::IntervalSummary::held), width_cell(intervals),
             log_cell(table, errors), in, in ? Cell() : table.out_of_range,
             fitted ? fitted_median : Cell())
        .rule_before = new_set && before != nullptr;
    before = &table;
  }
  return rows;
}

std::size_t in_range(const std::vector<measure::FidelityTable>& tables) {
  std::size_t count = 0;
  for (const auto& table : tables) {
    if (table.out_of_range.empty() && !table.predicted.empty() && !table.by_prior) ++count;
  }
  return count;
}

std::string overall_sentence(const std::vector<measure::FidelityTable>& tables) {
  const auto all = measure::overall(tables);
  if (!all) return "Overall: no row was predicted.";
  return "Overall, " + plural(all->rows, "predicted row") + " of " +
         plural(in_range(tables), "table") + " in range: median error " + share_text(all->median) +
         ", 90th percentile " + share_text(all->p90) + ", worst " + share_text(all->worst) + ".";
}

// All predicted rows that have an interval, out of range or not: an interval is to say how far off
// a cost may be, above all there.
std::optional<measure::IntervalSummary> all_intervals(
    const std::vector<measure::FidelityTable>& tables) {
  std::vector<measure::IntervalRow> rows;
  for (const auto& table : tables) {
    if (table.by_prior) continue;
    rows.insert(rows.end(), table.intervals.begin(), table.intervals.end());
  }
  return measure::interval_summary(rows);
}

std::string interval_sentence(const measure::IntervalSummary& intervals) {
  return "Of the rows whose forecast has an 80 % interval, in range or not, " +
         share_text(intervals.held) + " lie inside it; in the median its upper end lies " +
         share_text(intervals.width) + " above the forecast.";
}

Page page_of(const std::vector<measure::FidelityTable>& tables) {
  Page page{"Fidelity",
            "How wrong our predictions are about what others have measured, and, in the set live, "
            "about what ranks on our own machine did.",
            {}};
  page.blocks.emplace_back(
      "Calibrated rows were used to fit the parameters of their table; their errors say how well "
      "the model can bend. Predicted rows were not, or were left out in turn and predicted from "
      "the rest: their errors are the ones to trust.");
  if (!tables.empty()) page.blocks.emplace_back(grid_of(rows_of(tables)));
  page.blocks.emplace_back(overall_sentence(tables));
  if (const auto intervals = all_intervals(tables)) {
    page.blocks.emplace_back(interval_sentence(*intervals));
  }
  Items out{"Out of range, kept out of the overall figure:", {}};
  for (const auto& table : tables) {
    if (!table.out_of_range.empty()) out.items.push_back(table.name + ": " + table.out_of_range);
  }
  if (!out.items.empty()) page.blocks.emplace_back(std::move(out));
  return page;
}

Json json_of(const std::vector<measure::FidelityTable>& tables) {
  const Errors all = measure::overall(tables);
  const Intervals intervals = all_intervals(tables);
  const Json whole{
      {"tables", in_range(tables)},
      {"predicted_rows", all ? all->rows : 0},
      {"median_error_percent", figure(all, &measure::ErrorSummary::median).value},
      {"p90_error_percent", figure(all, &measure::ErrorSummary::p90).value},
      {"worst_error_percent", figure(all, &measure::ErrorSummary::worst).value},
      {"inside_interval_percent", figure(intervals, &measure::IntervalSummary::held).value},
      {"median_interval_percent", figure(intervals, &measure::IntervalSummary::width).value}};
  return Json{{"tables", json_of(rows_of(tables))}, {"overall", whole}};
}

}  // namespace

Answer answer_of(const std::vector<measure::FidelityTable>& tables) {
  return {"fidelity",
          "",
          [&] { return page_of(tables); },
          [&] { return rows_of(tables); },
          [&] { return json_of(tables); },
          {},
          [&] { return figures_of(tables); }};
}

}  // namespace syncline::reports
