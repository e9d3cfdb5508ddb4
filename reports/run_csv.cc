#include "reports/run_report.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <ostream>

#include "reports/axes.h"
#include "reports/fields.h"

namespace syncline::reports {

struct CsvColumn {
  std::string heading;
  std::function<std::string(const measure::Row&)> cell;
};

struct CsvRows::Columns {
  std::vector<CsvColumn> list;
};

namespace {

std::vector<CsvColumn> figure_columns(std::span<const Field> fields, const std::string& prefix) {
  std::vector<CsvColumn> columns;
  for (const auto& field : fields) {
    columns.push_back({prefix + std::string(field.name), [&field](const measure::Row& row) {
                         const auto value = field.of(row);
                         return value ? exact(*value).dump() : std::string();
                       }});
  }
  return columns;
}

// What somebody published, and how far off the prediction is.
std::vector<CsvColumn> comparison_columns() {
  const auto word = [](auto of) {
    return [of](const measure::Row& row) {
      return row.published ? std::string(of(*row.published)) : "";
    };
  };
  std::vector<CsvColumn> columns = figure_columns(published_fields(), "published_");
  columns.push_back({"published_use", word(use_of)});
  columns.push_back({"published_source", word([](const Published& p) { return p.source; })});
  columns.push_back({"published_note", word([](const Published& p) { return p.note; })});
  for (auto& column : figure_columns(error_fields(), "")) columns.push_back(std::move(column));
  return columns;
}

// What every row has.
std::vector<CsvColumn> plain_columns(const std::vector<measure::Row>& rows) {
  std::vector<CsvColumn> columns{
      {"strategy", [](const measure::Row& row) { return row.strategy; }},
      {"executor", [](const measure::Row& row) { return row.executor; }}};
  for (const auto& axis : axes_of(rows)) {
    columns.push_back(
        {axis.path, [axis](const measure::Row& row) { return value_text(row, axis); }});
  }
  for (auto& column : figure_columns(predicted_fields(), "")) columns.push_back(std::move(column));
  return columns;
}

// Where it was worked out.
CsvColumn memory_column() {
  return {"memory_bytes", [](const measure::Row& row) {
            return row.memory.total() > 0 ? exact(row.memory.total()).dump() : std::string();
          }};
}

std::vector<CsvColumn> columns_of(const measure::Report& report) {
  std::vector<CsvColumn> columns = plain_columns(report.rows);
  std::vector<CsvColumn> others = figure_columns(interval_fields(), "");
  others.push_back(memory_column());
  for (auto& column : comparison_columns()) others.push_back(std::move(column));
  for (auto& column : others) {
    const bool used =
        std::any_of(report.rows.begin(), report.rows.end(),
                    [&](const measure::Row& row) { return !column.cell(row).empty(); });
    if (used) columns.push_back(std::move(column));
  }
  return columns;
}

std::vector<std::string> headings_of(const std::vector<CsvColumn>& columns) {
  std::vector<std::string> headings;
  for (const auto& column : columns) headings.push_back(column.heading);
  return headings;
}

std::vector<std::string> cells_of(const std::vector<CsvColumn>& columns, const measure::Row& row) {
  std::vector<std::string> cells;
  for (const auto& column : columns) cells.push_back(column.cell(row));
  return cells;
}

}  // namespace

CsvTable csv_of(const measure::Report& report) {
  const std::vector<CsvColumn> columns = columns_of(report);
  CsvTable table;
  table.columns = headings_of(columns);
  for (const auto& row : report.rows) table.lines.push_back(cells_of(columns, row));
  return table;
}

CsvRows::CsvRows(const measure::Row& first) {
  std::vector<CsvColumn> columns = plain_columns({first});
  for (auto& column : figure_columns(interval_fields(), "")) columns.push_back(std::move(column));
  if (first.memory.total() > 0) columns.push_back(memory_column());
  columns_ = std::make_unique<Columns>(Columns{std::move(columns)});
}

CsvRows::~CsvRows() = default;

std::string CsvRows::head() const { return csv_line(headings_of(columns_->list)); }

std::string CsvRows::line(const measure::Row& row) const {
  return csv_line(cells_of(columns_->list, row));
}

void CsvStream::put(const measure::Row& row) {
  if (!lines_) {
    lines_.emplace(row);
    out_ << lines_->head();
  }
  out_ << lines_->line(row) << std::flush;
  ++rows_;
}

}  // namespace syncline::reports
