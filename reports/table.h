// A table of an answer, written once: people see a grid of it, programs get CSV and JSON. Values
// are in SI units; a column's kind says how people read them.
#pragma once

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "formats/json/json.h"
#include "reports/grid.h"
#include "studies/rows/interval.h"

namespace syncline::reports {

// How people read a column. Text and flags are left-aligned, numbers right-aligned.
enum class Kind {
  kText,
  kNote,     // text; on a terminal below the rest of its line
  kFlag,     // "yes", "no"
  kInteger,  // "12345"
  kCount,    // "12,345"
  kSeconds,
  kBytes,
  kSpeedup,  // "1.467x"
  kPercent,  // "+1.3 %"
  kShare,    // percent without a sign
  kThroughput
};

// Returns the shortest number that reads back the same; whole numbers without a point.
Json exact(double value);

// A value, or none. An interval is the list of its ends.
struct Cell {
  Json value = Json::value_t::discarded;  // unknown
  std::optional<std::string> text;        // for people, instead of the kind's format

  Cell() = default;
  Cell(double number) : value(exact(number)) {}
  Cell(bool flag) : value(flag) {}
  template <typename Integer, std::enable_if_t<std::is_integral_v<Integer>, int> = 0>
  Cell(Integer number) : value(number) {}
  Cell(std::string words) : value(std::move(words)) {}
  Cell(std::string_view words) : value(words) {}
  Cell(const char* words) : value(words) {}
  Cell(Json json) : value(std::move(json)) {}
  Cell(const measure::Interval& ends) : value(Json::array({exact(ends.low), exact(ends.high)})) {}
  template <typename Value>
  Cell(const std::optional<Value>& some) {
    if (some) value = Cell(*some).value;
  }

  bool has_value() const { return !value.is_discarded(); }
};

// Returns the value for programs, with other words for people.
Cell show_as(Cell cell, std::string text);
// Returns the cell, or null if it is unknown: JSON then has the member.
Cell or_null(Cell cell);

struct Column {
  enum Form { kNone, kPage, kCsv, kNoJson, kJson, kNoCsv, kPrograms, kAll };  // bits

  std::string heading;  // Grid::Column::heading; in a CSV too if there is no key
  // Name in JSON and CSV. "published/use" is a member of an object in JSON, "published_use" in CSV.
  // "time_*_s" names the ends of an interval, time_low_s and time_high_s.
  std::string key;
  Kind kind = Kind::kText;
  int rank = 0;  // Grid::Column::rank
  int forms = kAll;
  int sparse = kNone;  // forms without the column if no line has a value in it

  bool in(Form form) const { return (forms & form) != 0; }
};

struct Table;
// Returns the table without columns of a higher rank for people, or with one of these headings.
Table narrow_table(Table table, int rank, const std::vector<std::string>& headings = {});

// Returns a list of parts, each an item or several.
template <typename Item, typename... Parts>
std::vector<Item> make_list(Parts... parts) {
  std::vector<Item> all;
  const auto put = [&all](auto part) {
    if constexpr (std::is_same_v<decltype(part), std::vector<Item>>) {
      std::move(part.begin(), part.end(), std::back_inserter(all));
    } else {
      all.push_back(std::move(part));
    }
  };
  (put(std::move(parts)), ...);
  return all;
}
template <typename... Parts>
std::vector<Column> columns(Parts... parts) {
  return make_list<Column>(std::move(parts)...);
}
template <typename... Parts>
std::vector<Cell> cells(Parts... parts) {
  return make_list<Cell>(std::move(parts)...);
}

// Returns a column for people and programs.
Column table_column(std::string heading, std::string key, Kind kind = Kind::kText, int rank = 0,
                    int forms = Column::kAll, int sparse = Column::kNone);
// Returns a column for people only.
Column page_column(std::string heading, Kind kind = Kind::kText, int rank = 0,
                   int sparse = Column::kNone);
// Returns a column for programs only.
Column data_column(std::string key, int forms = Column::kPrograms, int sparse = Column::kNone);

struct Table {
  struct Line {
    std::vector<Cell> cells;  // one per column
    bool rule_before = false;
    Tone tone = Tone::kPlain;
  };
  std::vector<Column> columns;
  std::vector<Line> lines = {};

  // Adds a line. Throws std::logic_error unless it has a cell for each column.
  Line& add_line(std::vector<Cell> line);
  template <typename... Parts>
  Line& add(Parts... parts) {
    return add_line(reports::cells(std::move(parts)...));
  }
};

// A column with its cell in each row.
template <typename Row>
struct Field {
  Column column;
  std::function<Cell(const Row&)> cell;  // a function of a row, or a pointer to its member
};

// Joins fields and lists of fields.
template <typename Row, typename... Parts>
std::vector<Field<Row>> fields(Parts... parts) {
  return make_list<Field<Row>>(std::move(parts)...);
}

template <typename Row>
std::vector<Column> columns_of(const std::vector<Field<Row>>& fields) {
  std::vector<Column> columns;
  for (const Field<Row>& field : fields) columns.push_back(field.column);
  return columns;
}

template <typename Row>
std::vector<Cell> cells_of(const std::vector<Field<Row>>& fields, const Row& row) {
  std::vector<Cell> cells;
  for (const Field<Row>& field : fields) cells.push_back(field.cell(row));
  return cells;
}

// Returns a table with a line for each row.
template <typename Row>
Table table_of(const std::vector<Field<Row>>& fields, const std::vector<Row>& rows) {
  Table table{columns_of(fields)};
  for (const Row& row : rows) table.add_line(cells_of(fields, row));
  return table;
}

Grid grid_of(const Table& table);

// Returns a header line and lines of the same length. RFC 4180: lines end in CR LF; a cell with a
// comma, a quote or a line break is quoted.
std::string csv_text(const Table& table);
std::string csv_head(const Table& table);
std::string csv_lines(const Table& table);

// Returns an object per line, with its known members.
Json json_of(const Table& table);
Json json_of(const std::vector<Column>& columns, const Table::Line& line);

}  // namespace syncline::reports
