#include "reports/run_report.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "reports/axes.h"
#include "reports/fields.h"

namespace syncline::reports {
namespace {

struct Column {
  std::string heading;
  std::function<std::string(const measure::Row&)> cell;
};

std::vector<Column> figure_columns(std::span<const Field> fields, const std::string& prefix) {
  std::vector<Column> columns;
  for (const auto& field : fields) {
    columns.push_back({prefix + std::string(field.name), [&field](const measure::Row& row) {
                         const auto value = field.of(row);
                         return value ? exact(*value).dump() : std::string();
                       }});
  }
  return columns;
}

// What somebody published, and how far off the prediction is.
std::vector<Column> comparison_columns() {
  const auto word = [](auto of) {
    return [of](const measure::Row& row) {
      return row.published ? std::string(of(*row.published)) : "";
    };
  };
  std::vector<Column> columns = figure_columns(published_fields(), "published_");
  columns.push_back({"published_use", word(use_of)});
  columns.push_back({"published_source", word([](const Published& p) { return p.source; })});
  columns.push_back({"published_note", word([](const Published& p) { return p.note; })});
  for (auto& column : figure_columns(error_fields(), "")) columns.push_back(std::move(column));
  return columns;
}

std::vector<Column> columns_of(const measure::Report& report) {
  std::vector<Column> columns{{"strategy", [](const measure::Row& row) { return row.strategy; }},
                              {"executor", [](const measure::Row& row) { return row.executor; }}};
  for (const auto& axis : axes_of(report.rows)) {
    columns.push_back(
        {axis.path, [axis](const measure::Row& row) { return value_text(row, axis); }});
  }
  for (auto& column : figure_columns(predicted_fields(), "")) columns.push_back(std::move(column));
  std::vector<Column> others = figure_columns(interval_fields(), "");
  for (auto& column : comparison_columns()) others.push_back(std::move(column));
  for (auto& column : others) {
    const bool used =
        std::any_of(report.rows.begin(), report.rows.end(),
                    [&](const measure::Row& row) { return !column.cell(row).empty(); });
    if (used) columns.push_back(std::move(column));
  }
  return columns;
}

}  // namespace

CsvTable csv_of(const measure::Report& report) {
  const std::vector<Column> columns = columns_of(report);
  CsvTable table;
  for (const auto& column : columns) table.columns.push_back(column.heading);
  for (const auto& row : report.rows) {
    auto& line = table.lines.emplace_back();
    for (const auto& column : columns) line.push_back(column.cell(row));
  }
  return table;
}

}  // namespace syncline::reports
