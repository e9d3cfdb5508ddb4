#include "reports/validation_report.h"

#include <nlohmann/json.hpp>

#include "reports/fields.h"
#include "reports/figures.h"
#include "reports/format.h"

namespace syncline::reports {
namespace {

std::string percent(const std::optional<measure::ErrorSummary>& summary,
                    double measure::ErrorSummary::*member) {
  return summary ? share_text((*summary).*member) : "";
}

std::string width_text(const measure::IntervalSummary& intervals) {
  return "+" + share_text(intervals.width);
}

Grid grid_of(const std::vector<measure::FidelityTable>& tables) {
  Grid grid{{{"set", false},
             {"table", false},
             {"calibrated\nrows", true, 5},
             {"median\nerror", true, 5},
             {"worst", true, 5},
             {"predicted\nrows"},
             {"median\nerror"},
             {"90th\npercentile", true, 2},
             {"worst"},
             {"in 80 %\ninterval", true, 3},
             {"median\nwidth", true, 4},
             {"in\nrange", false, 1}},
            {}};
  const measure::FidelityTable* before = nullptr;
  for (const auto& table : tables) {
    const auto fitted = measure::summary_of(table.calibrated);
    const auto predicted = measure::summary_of(table.predicted);
    const auto intervals = measure::interval_summary(table.intervals);
    const bool new_set = before == nullptr || before->set != table.set;
    grid.lines.push_back(
        {{new_set ? table.set : "", table.name, std::to_string(table.calibrated.size()),
          percent(fitted, &measure::ErrorSummary::median),
          percent(fitted, &measure::ErrorSummary::worst), std::to_string(table.predicted.size()),
          percent(predicted, &measure::ErrorSummary::median),
          percent(predicted, &measure::ErrorSummary::p90),
          percent(predicted, &measure::ErrorSummary::worst),
          intervals ? share_text(intervals->held) : "", intervals ? width_text(*intervals) : "",
          table.out_of_range.empty() ? "yes" : "no"},
         new_set && before != nullptr});
    before = &table;
  }
  return grid;
}

std::size_t in_range(const std::vector<measure::FidelityTable>& tables) {
  std::size_t count = 0;
  for (const auto& table : tables) {
    if (table.out_of_range.empty() && !table.predicted.empty()) ++count;
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
// a price may be, above all there.
std::optional<measure::IntervalSummary> all_intervals(
    const std::vector<measure::FidelityTable>& tables) {
  std::vector<measure::IntervalRow> rows;
  for (const auto& table : tables) {
    rows.insert(rows.end(), table.intervals.begin(), table.intervals.end());
  }
  return measure::interval_summary(rows);
}

std::string interval_sentence(const measure::IntervalSummary& intervals) {
  return "Of the rows whose forecast has an 80 % interval, in range or not, " +
         share_text(intervals.held) + " lie inside it; in the median its upper end lies " +
         share_text(intervals.width) + " above the forecast.";
}

void add_intervals(Json& object, const std::optional<measure::IntervalSummary>& intervals) {
  object["inside_interval_percent"] = intervals ? exact(intervals->held) : Json();
  object["median_interval_percent"] = intervals ? exact(intervals->width) : Json();
}

void add_errors(Json& object, const std::optional<measure::ErrorSummary>& summary) {
  object["median_error_percent"] = summary ? exact(summary->median) : Json();
  object["p90_error_percent"] = summary ? exact(summary->p90) : Json();
  object["worst_error_percent"] = summary ? exact(summary->worst) : Json();
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
  if (!tables.empty()) page.blocks.emplace_back(grid_of(tables));
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
  Json list = Json::array();
  for (const auto& table : tables) {
    Json object = Json::object();
    object["set"] = table.set;
    object["name"] = table.name;
    object["calibrated_rows"] = table.calibrated.size();
    object["predicted_rows"] = table.predicted.size();
    add_errors(object, measure::summary_of(table.predicted));
    add_intervals(object, measure::interval_summary(table.intervals));
    object["in_range"] = table.out_of_range.empty();
    if (!table.out_of_range.empty()) object["out_of_range"] = table.out_of_range;
    const auto fitted = measure::summary_of(table.calibrated);
    if (fitted) object["calibrated_median_error_percent"] = exact(fitted->median);
    list.push_back(std::move(object));
  }
  const auto all = measure::overall(tables);
  Json whole = Json::object();
  whole["tables"] = in_range(tables);
  whole["predicted_rows"] = all ? all->rows : 0;
  add_errors(whole, all);
  add_intervals(whole, all_intervals(tables));
  return Json{{"tables", list}, {"overall", whole}};
}

CsvTable csv_of(const std::vector<measure::FidelityTable>& tables) {
  CsvTable lines{{"set", "name", "calibrated_rows", "predicted_rows", "median_error_percent",
                  "p90_error_percent", "worst_error_percent", "inside_interval_percent",
                  "median_interval_percent", "in_range"},
                 {}};
  for (const auto& table : tables) {
    const auto errors = measure::summary_of(table.predicted);
    const auto intervals = measure::interval_summary(table.intervals);
    const auto figure = [&](double measure::ErrorSummary::*member) {
      return errors ? exact((*errors).*member).dump() : "";
    };
    lines.lines.push_back(
        {table.set, table.name, std::to_string(table.calibrated.size()),
         std::to_string(table.predicted.size()), figure(&measure::ErrorSummary::median),
         figure(&measure::ErrorSummary::p90), figure(&measure::ErrorSummary::worst),
         intervals ? exact(intervals->held).dump() : "",
         intervals ? exact(intervals->width).dump() : "",
         table.out_of_range.empty() ? "true" : "false"});
  }
  return lines;
}

}  // namespace

Answer answer_of(const std::vector<measure::FidelityTable>& tables) {
  return {"fidelity",
          "",
          [&] { return page_of(tables); },
          [&] { return csv_of(tables); },
          [&] { return json_of(tables); },
          {},
          [&] { return figures_of(tables); }};
}

}  // namespace syncline::reports
