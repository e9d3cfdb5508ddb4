#include "reports/table.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "formats/text/visible.h"
#include "reports/format.h"

namespace syncline::reports {
namespace {

std::string range_text(const Json& ends, Kind kind) {
  const auto low = ends[0].get<double>(), high = ends[1].get<double>();
  return kind == Kind::kSpeedup ? speedup_range(low, high) : seconds_range(low, high);
}

std::string number_text(const Json& value, Kind kind) {
  const auto number = value.get<double>();
  switch (kind) {
    case Kind::kCount:
      return count_text(number);
    case Kind::kSeconds:
      return seconds_text(number);
    case Kind::kBytes:
      return bytes_text(number);
    case Kind::kSpeedup:
      return speedup_text(number);
    case Kind::kPercent:
      return percent_text(number);
    case Kind::kShare:
      return share_text(number);
    case Kind::kThroughput:
      return throughput_text(number);
    default:
      return value.dump();
  }
}

std::string text_of(const Column& column, const Cell& cell) {
  if (cell.text) return *cell.text;
  if (!cell.has_value() || cell.value.is_null()) return "";
  if (cell.value.is_string()) return cell.value.get_ref<const std::string&>();
  if (cell.value.is_boolean()) return cell.value.get<bool>() ? "yes" : "no";
  return cell.value.is_array() ? range_text(cell.value, column.kind)
                               : number_text(cell.value, column.kind);
}

// Returns, for each column, true if it is shown in this form.
std::vector<bool> standing(const Table& table, Column::Form form) {
  std::vector<bool> stands;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const Column& column = table.columns[c];
    const auto filled = [&](const Table::Line& line) {
      return form == Column::kPage ? !text_of(column, line.cells[c]).empty()
                                   : line.cells[c].has_value();
    };
    stands.push_back(column.in(form) &&
                     ((column.sparse & form) == 0 ||
                      std::any_of(table.lines.begin(), table.lines.end(), filled)));
  }
  return stands;
}

std::string replaced(std::string key, const std::string& what, const std::string& with) {
  const auto at = key.find(what);
  return at == std::string::npos ? key : key.replace(at, what.size(), with);
}

bool is_interval(const std::string& key) { return key.find('*') != std::string::npos; }

// Returns the names of a column's value: one, or those of an interval's ends.
std::vector<std::string> names_of(const std::string& key) {
  if (key.empty()) return {};
  if (!is_interval(key)) return {key};
  return {replaced(key, "*", "low"), replaced(key, "*", "high")};
}

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string cell = "\"";
  for (const char letter : text) {
    if (letter == '"') cell += '"';
    cell += letter;
  }
  return cell + "\"";
}

std::string csv_cell(const Json& value) {
  if (value.is_discarded() || value.is_null()) return "";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return exact(value.get<double>()).dump();
  if (!value.is_array()) return value.dump();
  std::string list;
  for (const Json& item : value) list += (list.empty() ? "" : ",") + item.dump();
  return list;
}

std::string csv_line(const std::vector<std::string>& cells) {
  std::string line;
  for (const auto& cell : cells)
    line += (&cell == cells.data() ? "" : ",") + quoted(visible(cell, "\n"));
  return line + "\r\n";
}

}  // namespace

Json exact(double value) {
  constexpr double kExactIntegers = 9007199254740992;  // 2^53
  const bool whole = std::fabs(value) < kExactIntegers && value == std::floor(value);
  return whole ? Json(static_cast<std::int64_t>(value)) : Json(value);
}

Cell show_as(Cell cell, std::string text) {
  cell.text = std::move(text);
  return cell;
}

Cell or_null(Cell cell) {
  if (!cell.has_value()) cell.value = nullptr;
  return cell;
}

Column table_column(std::string heading, std::string key, Kind kind, int rank, int forms,
                    int sparse) {
  return {std::move(heading), std::move(key), kind, rank, forms, sparse};
}

Column page_column(std::string heading, Kind kind, int rank, int sparse) {
  return {std::move(heading), "", kind, rank, Column::kPage, sparse};
}

Column data_column(std::string key, int forms, int sparse) {
  return {"", std::move(key), Kind::kText, 0, forms, sparse};
}

Table::Line& Table::add_line(std::vector<Cell> line) {
  if (line.size() != columns.size()) throw std::logic_error("a table's line is not as wide as it");
  return lines.emplace_back(Line{std::move(line)});
}

Grid grid_of(const Table& table) {
  const std::vector<bool> stands = standing(table, Column::kPage);
  Grid grid;
  for (std::size_t c = 0; c < stands.size(); ++c) {
    const Column& column = table.columns[c];
    const bool below = column.kind == Kind::kNote;
    const bool right = !below && column.kind != Kind::kText && column.kind != Kind::kFlag;
    if (stands[c]) grid.columns.push_back({column.heading, right, column.rank, below});
  }
  for (const auto& line : table.lines) {
    Grid::Line& drawn = grid.lines.emplace_back(Grid::Line{{}, line.rule_before, line.tone});
    for (std::size_t c = 0; c < stands.size(); ++c) {
      if (stands[c]) drawn.cells.push_back(text_of(table.columns[c], line.cells[c]));
    }
  }
  return grid;
}

std::string csv_head(const Table& table) {
  const std::vector<bool> stands = standing(table, Column::kCsv);
  std::vector<std::string> cells;
  for (std::size_t c = 0; c < stands.size(); ++c) {
    if (!stands[c]) continue;
    const Column& column = table.columns[c];
    if (column.key.empty()) cells.push_back(column.heading);
    for (auto& name : names_of(replaced(column.key, "/", "_"))) cells.push_back(std::move(name));
  }
  return csv_line(cells);
}

std::string csv_lines(const Table& table) {
  const std::vector<bool> stands = standing(table, Column::kCsv);
  std::string text;
  for (const auto& line : table.lines) {
    std::vector<std::string> cells;
    for (std::size_t c = 0; c < stands.size(); ++c) {
      if (!stands[c]) continue;
      const Json& value = line.cells[c].value;
      const bool ends = is_interval(table.columns[c].key) && value.is_array();
      cells.push_back(csv_cell(ends ? value[0] : value));
      if (is_interval(table.columns[c].key)) cells.push_back(csv_cell(ends ? value[1] : value));
    }
    text += csv_line(cells);
  }
  return text;
}

std::string csv_text(const Table& table) { return csv_head(table) + csv_lines(table); }

Json json_of(const std::vector<Column>& columns, const Table::Line& line) {
  Json object = Json::object();
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const Json& value = line.cells[c].value;
    if (!columns[c].in(Column::kJson) || value.is_discarded()) continue;
    const std::string& key = columns[c].key;
    const auto slash = key.find('/');
    Json& at = slash == std::string::npos ? object : object[key.substr(0, slash)];
    const auto names = names_of(slash == std::string::npos ? key : key.substr(slash + 1));
    for (std::size_t i = 0; i < names.size(); ++i) {
      at[names[i]] = names.size() == 2 ? value[i] : value;
    }
  }
  return object;
}

Json json_of(const Table& table) {
  Json list = Json::array();
  for (const auto& line : table.lines) list.push_back(json_of(table.columns, line));
  return list;
}

Table narrow_table(Table table, int rank, const std::vector<std::string>& headings) {
  for (std::size_t i = table.columns.size(); i-- > 0;) {
    const Column& column = table.columns[i];
    if (column.rank <= rank && std::ranges::find(headings, column.heading) == headings.end())
      continue;
    const auto place = static_cast<std::ptrdiff_t>(i);
    table.columns.erase(table.columns.begin() + place);
    for (auto& line : table.lines) line.cells.erase(line.cells.begin() + place);
  }
  return table;
}

}  // namespace syncline::reports
