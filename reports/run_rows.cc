#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>

#include "formats/json/text.h"
#include "formats/text/digits.h"
#include "reports/format.h"
#include "reports/memory_text.h"
#include "reports/run_report.h"
#include "reports/run_rows.h"
#include "reports/table.h"

namespace syncline::reports {
namespace {

constexpr std::string_view kStrategies = "strategies.";

// The last `count` components of a dotted path.
std::string tail(const std::string& path, std::size_t count) {
  if (path.starts_with(kStrategies)) return path.substr(kStrategies.size());
  std::size_t dot = path.size();
  for (; count > 0; --count) {
    dot = dot == 0 ? std::string::npos : path.rfind('.', dot - 1);
    if (dot == std::string::npos) return path;
  }
  return path.substr(dot + 1);
}

// Takes one more component wherever names clash, until they do not or paths are used up.
void name_axes(std::vector<Axis>& axes) {
  std::vector<std::size_t> length(axes.size(), 1);
  for (std::size_t round = 0; round < 64; ++round) {
    std::multiset<std::string> names;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      axes[i].name = tail(axes[i].path, length[i]);
      names.insert(axes[i].name);
    }
    if (std::set<std::string>(names.begin(), names.end()).size() == names.size()) return;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      if (names.count(axes[i].name) > 1) ++length[i];
    }
  }
}

}  // namespace

std::vector<Axis> axes_of(const std::vector<measure::Row>& rows) {
  std::vector<Axis> axes;
  for (const auto& row : rows) {
    for (const auto& [path, value] : row.sweep) {
      const bool known = std::any_of(axes.begin(), axes.end(),
                                     [&path = path](const Axis& a) { return a.path == path; });
      if (!known) axes.push_back({path, path});
    }
  }
  name_axes(axes);
  return axes;
}

const Json* value_on(const measure::Row& row, const Axis& axis) {
  const auto found = std::find_if(row.sweep.begin(), row.sweep.end(),
                                  [&](const auto& entry) { return entry.first == axis.path; });
  return found == row.sweep.end() ? nullptr : &found->second;
}

std::string value_text(const measure::Row& row, const Axis& axis) {
  const Json* value = value_on(row, axis);
  return value == nullptr ? "" : plain_text(*value);
}

std::string point_text(const measure::Row& row, const std::vector<Axis>& axes) {
  std::string text;
  for (const auto& axis : axes) {
    if (!text.empty()) text += ", ";
    text += axis.name + " " + value_text(row, axis);
  }
  return text;
}

bool same_point(const measure::Row& a, const measure::Row& b) {
  return a.executor == b.executor && a.sweep == b.sweep;
}

namespace {

constexpr int kPrograms = Column::kPrograms;
constexpr int kSparse = Column::kNoJson;  // in a grid and a CSV

Json buckets_json(const std::vector<std::pair<std::int64_t, double>>& buckets) {
  Json list = Json::array();
  for (const auto& [tensors, mebibytes] : buckets) {
    list.push_back(Json::array({Json(tensors), exact(mebibytes)}));
  }
  return list;
}

// JSON has no word for infinity and not-a-number: such a figure does not apply.
Cell finite(double value) { return std::isfinite(value) ? Cell(value) : Cell(); }
Cell finite(const std::optional<double>& value) { return value ? finite(*value) : Cell(); }

// A figure that is known.
Cell positive(double value) { return value > 0 ? finite(value) : Cell(); }

// Of small shares the first two digits say more than a fixed number of them.
Cell rounding_cell(double percent) {
  return percent > 0 ? shown_as(finite(percent), short_text(percent, 2) + " %") : Cell();
}

// An interval that was worked out.
Cell known(const measure::Interval& ends) {
  const bool told = ends.low > 0 && std::isfinite(ends.low) && std::isfinite(ends.high);
  return told ? Cell(ends) : Cell();
}

// What predictions are, in SI units; the meaning of each stands in core/metrics.h.
// `causes`: the forms that say what a step time is made of. What a row is called and how fast it is
// stays longest on a narrow screen; causes leave first.
std::vector<Column> predicted_columns(const std::string& baseline, int causes) {
  using enum Kind;
  const int memory = causes & Column::kPage;
  return columns(
      both("step\ntime", "step_time_s", kSeconds),
      shown("80 %\ninterval", kSeconds, 1, Column::kPage),
      both("throughput,\nsamples/s", "throughput", kThroughput, 7),
      both("speedup over\n" + one_line(baseline), "speedup", kSpeedup),
      shown("80 %\ninterval", kSpeedup, 4, Column::kPage),
      both("tokens/s\na GPU", "tokens_per_s_per_gpu", kThroughput, 3, Column::kAll, kSparse),
      both("MFU", "mfu_percent", kShare, 4, Column::kAll, kSparse),
      both("effi-\nciency", "efficiency_percent", kShare, 3, Column::kAll, kSparse),
      both("memory\na GPU", "", kBytes, 2, memory, Column::kPage),
      both("rounding\nerror", "rounding_error_percent", kShare, 5, Column::kAll, kSparse),
      both("collectives\nper step", "collectives", kCount, 5, causes),
      both("sent\nper rank", "bytes_on_wire_per_rank", kBytes, 8, causes),
      both("compute", "compute_s", kSeconds, 6, causes), kept("communication_s"),
      both("exposed\ncomm.", "exposed_communication_s", kSeconds, 3, causes), kept("handling_s"),
      both("lower\nbound", "lower_bound_s", kSeconds, 9, causes));
}

std::vector<Cell> predicted_cells(const measure::Row& row) {
  const measure::Metrics& metrics = row.metrics;
  return cells(shown_as(finite(metrics.step_time), seconds_text(metrics.step_time)), row.step,
               shown_as(finite(metrics.throughput), throughput_text(metrics.throughput)),
               shown_as(finite(row.speedup), speedup_text(row.speedup)), row.gain,
               positive(row.rate.tokens), positive(100 * row.rate.mfu),
               positive(100 * row.rate.efficiency), shown_as({}, memory_cell(row.memory)),
               rounding_cell(100 * row.rounding_error), finite(metrics.collectives),
               finite(metrics.bytes_on_wire), finite(metrics.compute),
               finite(metrics.communication), finite(metrics.exposed), finite(metrics.handling),
               finite(metrics.lower_bound));
}

// What jobs on the same fabric do to each other.
std::vector<Column> company_columns() {
  using enum Kind;
  return columns(both("slowdown", "slowdown", kSpeedup, 0, kSparse, kSparse),
                 both("others'\nslowdown", "others_slowdown", kText, 0, kSparse, kSparse),
                 both("hot link", "hot_link", kText, 0, kSparse, kSparse),
                 kept("company", Column::kJson), kept("hot_links", Column::kJson));
}

std::vector<Cell> company_cells(const measure::Company& company) {
  if (company.jobs.empty()) return std::vector<Cell>(5);
  Json jobs = Json::array();
  std::string others;
  for (const auto& job : company.jobs) {
    const double slowdown = job.together / job.alone;
    Json one{{"name", job.name}, {"alone_s", exact(job.alone)}};
    if (std::isfinite(slowdown)) one["together_s"] = exact(job.together);
    if (std::isfinite(slowdown)) one["slowdown"] = exact(slowdown);
    jobs.push_back(std::move(one));
    if (&job == &company.jobs.front()) continue;
    others += others.empty() ? "" : ", ";
    others += std::isfinite(slowdown) ? speedup_text(slowdown) : "not known";
  }
  Json links = Json::array();
  std::string hot;
  for (const auto& [link, load] : company.hot) {
    links.push_back({{"link", link}, {"load_percent", exact(100 * load)}});
    if (hot.empty()) hot = link + ", " + share_text(100 * load);
  }
  const auto& own = company.jobs.front();
  return cells(own.together / own.alone, others, hot.empty() ? Cell() : Cell(hot), jobs, links);
}

// What somebody published, and how far off the prediction is.
std::vector<Column> published_columns() {
  using enum Kind;
  return columns(
      shown("published", kSeconds, 0, Column::kPage),
      kept("published/step_time_s", kPrograms, kSparse),
      kept("published/throughput", kPrograms, kSparse),
      kept("published/speedup", kPrograms, kSparse),
      both("collectives\n(published)", "published/collectives", kCount, 5, Column::kAll, kSparse),
      kept("published/accuracy", kPrograms, kSparse), kept("published/buckets", Column::kJson),
      both("use", "published/use", kText, 2, Column::kAll, kSparse),
      kept("published/source", kPrograms, kSparse), kept("published/note", kPrograms, kSparse),
      both("error", "error_percent", kPercent, 0, Column::kAll, kSparse),
      both("left-out\nerror", "left_out_error_percent", kPercent, 2, Column::kAll, kSparse),
      shown("accuracy\n(published)", kInteger, 0, Column::kPage));
}

// The published figure that the error is about.
std::string published_figure(const Published& published) {
  if (published.step_time) return seconds_text(*published.step_time);
  if (published.throughput) return throughput_text(*published.throughput) + " /s";
  return published.speedup ? speedup_text(*published.speedup) : "";
}

std::vector<Cell> published_cells(const measure::Row& row) {
  const Cell error = finite(row.error_percent), left_out = finite(row.left_out_error_percent);
  if (!row.published) return cells(std::vector<Cell>(10), error, left_out, Cell());
  const Published& published = *row.published;
  const auto said = [](const std::string& text) { return text.empty() ? Cell() : Cell(text); };
  return cells(published_figure(published), finite(published.step_time),
               finite(published.throughput), finite(published.speedup), published.collectives,
               finite(published.accuracy),
               published.buckets.empty() ? Cell() : buckets_json(published.buckets),
               published.calibrated ? "calibrated" : "predicted", said(published.source),
               said(published.note), error, left_out, published.accuracy);
}

std::vector<Column> naming_columns(const std::vector<measure::Row>& rows,
                                   const std::vector<Axis>& axes) {
  using enum Kind;
  std::vector<Column> named;
  for (const auto& axis : axes) {
    const bool numbers = std::all_of(rows.begin(), rows.end(), [&](const measure::Row& row) {
      const Json* value = value_on(row, axis);
      return value == nullptr || value->is_number();
    });
    named.push_back(shown(axis.name, numbers ? kInteger : kText));
  }
  const bool several = std::any_of(rows.begin(), rows.end(), [&](const measure::Row& row) {
    return row.executor != rows.front().executor;
  });
  return columns(named, both("strategy", "strategy"),
                 both("executor", "executor", kText, 0, several ? Column::kAll : kPrograms));
}

std::vector<Cell> axis_cells(const measure::Row& row, const std::vector<Axis>& axes) {
  std::vector<Cell> values;
  for (const auto& axis : axes) values.emplace_back(value_text(row, axis));
  return values;
}

std::vector<Column> columns_of(const std::vector<measure::Row>& rows, const std::vector<Axis>& axes,
                               const std::string& baseline, int causes) {
  std::vector<Column> paths;
  for (const auto& axis : axes) paths.push_back(both(axis.path, "", Kind::kText, 0, Column::kCsv));
  return columns(naming_columns(rows, axes), kept("sweep", Column::kJson), paths,
                 predicted_columns(baseline, causes), kept("step_time_*_s", kPrograms, kSparse),
                 kept("speedup_*", kPrograms, kSparse), kept("memory_bytes", Column::kCsv, kSparse),
                 kept("memory_bytes", Column::kJson), kept("buckets", Column::kJson),
                 company_columns(), published_columns());
}

std::vector<Cell> cells_of(const measure::Row& row, const std::vector<Axis>& axes) {
  const std::vector<Cell> point = axis_cells(row, axes);
  Json sweep = Json::object();
  for (const auto& [path, value] : row.sweep) sweep[path] = value;
  const bool memory = row.memory.total() > 0;
  // Buckets can be many; they are listed where there is something to compare them with.
  const bool buckets = row.published && !row.published->buckets.empty();
  return cells(point, row.strategy, row.executor, sweep, point, predicted_cells(row),
               known(row.step), known(row.gain), memory ? row.memory.total() : Cell(),
               memory ? memory_json(row.memory) : Cell(),
               buckets ? buckets_json(row.buckets) : Cell(), company_cells(row.company),
               published_cells(row));
}

}  // namespace

Table named_rows(const std::vector<measure::Row>& rows, const std::vector<Column>& more,
                 const std::function<std::vector<Cell>(const measure::Row&)>& cells) {
  const std::vector<Axis> axes = axes_of(rows);
  Table table{columns(naming_columns(rows, axes), more)};
  for (const auto& row : rows) {
    table.add(axis_cells(row, axes), row.strategy, row.executor, cells(row));
  }
  return table;
}

Table run_rows(const std::vector<measure::Row>& rows, const std::string& baseline, int causes) {
  const std::vector<Axis> axes = axes_of(rows);
  Table table{columns_of(rows, axes, baseline, causes)};
  for (const auto& row : rows) table.add(cells_of(row, axes));
  return table;
}

Json rows_json(const std::vector<measure::Row>& rows) {
  const std::vector<Axis> axes = axes_of(rows);
  const std::vector<Column> columns = columns_of(rows, axes, "", Column::kAll);
  Json list = Json::array();
  for (const auto& row : rows) list.push_back(json_of(columns, {cells_of(row, axes)}));
  return list;
}

void put_predicted(Json& object, const measure::Metrics& metrics) {
  measure::Row row;
  row.metrics = metrics;
  row.speedup = std::numeric_limits<double>::quiet_NaN();
  object.update(json_of(predicted_columns("", Column::kAll), {predicted_cells(row)}));
}

// What is known of the first row, and intervals, stand in all lines.
void CsvStream::begin(const measure::Row& first) {
  axes_ = axes_of({first});
  table_ = run_rows({first}, "", Column::kAll);
  const auto& cells = table_.lines.front().cells;
  for (std::size_t c = 0; c < cells.size(); ++c) {
    Column& column = table_.columns[c];
    if (column.sparse == Column::kNone) continue;
    const bool interval = column.key.find('*') != std::string::npos;
    if (!interval && !cells[c].known()) column.forms = Column::kNone;
    column.sparse = Column::kNone;
  }
}

void CsvStream::put(const measure::Row& row) {
  if (count_ == 0) begin(row);
  table_.lines = {{cells_of(row, axes_)}};
  out_ << (count_ == 0 ? csv_text(table_) : csv_lines(table_)) << std::flush;
  ++count_;
}

}  // namespace syncline::reports
