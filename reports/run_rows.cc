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

// Returns the last `count` components of a dotted path.
std::string tail(const std::string& path, std::size_t count) {
  if (path.starts_with(kStrategies)) return path.substr(kStrategies.size());
  std::size_t dot = path.size();
  for (; count > 0; --count) {
    dot = dot == 0 ? std::string::npos : path.rfind('.', dot - 1);
    if (dot == std::string::npos) return path;
  }
  return path.substr(dot + 1);
}

// Names axes by their last component; names that clash get more components.
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

const Json* axis_value(const measure::Row& row, const Axis& axis) {
  const auto found = std::find_if(row.sweep.begin(), row.sweep.end(),
                                  [&](const auto& entry) { return entry.first == axis.path; });
  return found == row.sweep.end() ? nullptr : &found->second;
}

std::string value_text(const measure::Row& row, const Axis& axis) {
  const Json* value = axis_value(row, axis);
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

// Returns a cell, empty if not finite: JSON has no infinity and no not-a-number.
Cell finite(double value) { return std::isfinite(value) ? Cell(value) : Cell(); }
Cell finite(const std::optional<double>& value) { return value ? finite(*value) : Cell(); }

// Returns a cell with the value, empty unless it is above 0.
Cell positive(double value) { return value > 0 ? finite(value) : Cell(); }

// Returns a share with two significant digits: small ones would vanish with fixed decimals.
Cell rounding_cell(double percent) {
  return percent > 0 ? show_as(finite(percent), short_text(percent, 2) + " %") : Cell();
}

// Returns a cell with the interval, empty if it is unknown.
Cell known(const measure::Interval& ends) {
  const bool told = ends.low > 0 && std::isfinite(ends.low) && std::isfinite(ends.high);
  return told ? Cell(ends) : Cell();
}

using RowField = Field<measure::Row>;

// Returns a cell of one figure of the metrics.
template <typename Value>
auto figure(Value measure::Metrics::*figure) {
  return [figure](const measure::Row& row) { return finite(row.metrics.*figure); };
}

// Returns true for a job of tokens: its users read tokens per second, MFU and memory.
bool has_tokens(const std::vector<measure::Row>& rows) {
  return std::ranges::any_of(rows, [](const measure::Row& row) { return row.rate.tokens > 0; });
}

// Returns fields of step time, throughput and speedup, with intervals. For a job of tokens, the
// speedup leaves a narrow screen earlier.
std::vector<RowField> speed_fields(const std::string& baseline, bool tokens) {
  using enum Kind;
  return {
      {table_column("step\ntime", "step_time_s", kSeconds),
       [](const measure::Row& row) {
         const Seconds step = row.metrics.step_time;
         return show_as(finite(step), seconds_text(step));
       }},
      {page_column("80 %\ninterval", kSeconds, tokens ? 2 : 1, Column::kPage), &measure::Row::step},
      {table_column("throughput,\nsamples/s", "throughput", kThroughput, 7),
       [](const measure::Row& row) {
         const double throughput = row.metrics.throughput;
         return show_as(finite(throughput), throughput_text(throughput));
       }},
      {table_column("speedup over\n" + one_line(baseline), "speedup", kSpeedup, tokens ? 3 : 0),
       [](const measure::Row& row) {
         return show_as(finite(row.speedup), speedup_text(row.speedup));
       }},
      {page_column("80 %\ninterval", kSpeedup, 4, Column::kPage), &measure::Row::gain}};
}

// Returns fields of the devices' use. A figure that no row has is left out.
std::vector<RowField> use_fields() {
  using enum Kind;
  return {{table_column("tokens/s\nper GPU", "tokens_per_s_per_gpu", kThroughput, 1, Column::kAll,
                        kSparse),
           [](const measure::Row& row) { return positive(row.rate.tokens); }},
          {table_column("MFU", "mfu_percent", kShare, 1, Column::kAll, kSparse),
           [](const measure::Row& row) { return positive(100 * row.rate.mfu); }},
          {table_column("effi-\nciency", "efficiency_percent", kShare, 3, Column::kAll, kSparse),
           [](const measure::Row& row) { return positive(100 * row.rate.efficiency); }}};
}

// Returns fields of the parts of a step time, in the forms `causes`; core/metrics.h defines them.
std::vector<RowField> cause_fields(int causes, bool tokens) {
  using enum Kind;
  using measure::Metrics;
  const int memory = causes & Column::kPage;
  return {
      {table_column("memory\nper GPU", "", kBytes, tokens ? 1 : 2, memory, Column::kPage),
       [](const measure::Row& row) { return show_as({}, memory_cell(row.memory)); }},
      {table_column("rounding\nerror", "rounding_error_percent", kShare, 5, Column::kAll, kSparse),
       [](const measure::Row& row) { return rounding_cell(100 * row.rounding_error); }},
      {table_column("collectives\nper step", "collectives", kCount, 5, causes),
       figure(&Metrics::collectives)},
      {table_column("sent\nper rank", "bytes_on_wire_per_rank", kBytes, 8, causes),
       figure(&Metrics::bytes_on_wire)},
      {table_column("compute", "compute_s", kSeconds, 6, causes), figure(&Metrics::compute)},
      {data_column("communication_s"), figure(&Metrics::communication)},
      {table_column("exposed\ncomm.", "exposed_communication_s", kSeconds, tokens ? 1 : 3, causes),
       figure(&Metrics::exposed)},
      {data_column("handling_s"), figure(&Metrics::comm_overhead)},
      {table_column("lower\nbound", "lower_bound_s", kSeconds, 9, causes),
       figure(&Metrics::lower_bound)}};
}

// Returns fields of the prediction, in SI units. On a narrow screen names and speeds stay longest.
std::vector<RowField> predicted_fields(const std::vector<measure::Row>& rows,
                                       const std::string& baseline, int causes) {
  const bool tokens = has_tokens(rows);
  return fields<measure::Row>(speed_fields(baseline, tokens), use_fields(),
                              cause_fields(causes, tokens));
}

std::string slowdown_text(double slowdown) {
  return std::isfinite(slowdown) ? speedup_text(slowdown) : "not known";
}

Json jobs_json(const measure::FabricJobs& fabric_jobs) {
  Json jobs = Json::array();
  for (const auto& job : fabric_jobs.jobs) {
    const double slowdown = job.together / job.alone;
    Json one{{"name", job.name}, {"alone_s", exact(job.alone)}};
    if (std::isfinite(slowdown)) one["together_s"] = exact(job.together);
    if (std::isfinite(slowdown)) one["slowdown"] = exact(slowdown);
    jobs.push_back(std::move(one));
  }
  return jobs;
}

Json links_json(const measure::FabricJobs& fabric_jobs) {
  Json links = Json::array();
  for (const auto& [link, load] : fabric_jobs.hot) {
    links.push_back({{"link", link}, {"load_percent", exact(100 * load)}});
  }
  return links;
}

// Returns the slowdowns of the jobs that share the fabric with a row's own.
Cell others_slowdown(const measure::FabricJobs& fabric_jobs) {
  std::string text;
  for (std::size_t i = 1; i < fabric_jobs.jobs.size(); ++i) {
    const auto& job = fabric_jobs.jobs[i];
    text += (i > 1 ? ", " : "") + slowdown_text(job.together / job.alone);
  }
  return text;
}

// Returns fields of jobs on the same fabric, which slow each other down.
std::vector<RowField> fabric_job_fields() {
  using enum Kind;
  const auto of = [](auto cell) {
    return [cell](const measure::Row& row) {
      return row.fabric_jobs.jobs.empty() ? Cell() : Cell(cell(row.fabric_jobs));
    };
  };
  return {{table_column("slowdown", "slowdown", kSpeedup, 0, kSparse, kSparse),
           of([](const measure::FabricJobs& fabric_jobs) {
             return fabric_jobs.jobs.front().together / fabric_jobs.jobs.front().alone;
           })},
          {table_column("others'\nslowdown", "others_slowdown", kText, 0, kSparse, kSparse),
           of(others_slowdown)},
          {table_column("hot link", "hot_link", kText, 0, kSparse, kSparse),
           of([](const measure::FabricJobs& fabric_jobs) {
             if (fabric_jobs.hot.empty()) return Cell();
             const auto& [link, load] = fabric_jobs.hot.front();
             return Cell(link + ", " + share_text(100 * load));
           })},
          {data_column("company", Column::kJson), of(jobs_json)},
          {data_column("hot_links", Column::kJson), of(links_json)}};
}

// Returns the published figure that the error is about.
std::string error_figure(const Published& published) {
  if (published.step_time) return seconds_text(*published.step_time);
  if (published.throughput) return throughput_text(*published.throughput) + " /s";
  return published.speedup ? speedup_text(*published.speedup) : "";
}

// Returns fields of published figures, and of the prediction's error.
std::vector<RowField> published_fields() {
  using enum Kind;
  const auto of = [](auto cell) {
    return [cell](const measure::Row& row) {
      return row.published ? Cell(std::invoke(cell, *row.published)) : Cell();
    };
  };
  const auto number = [&](std::optional<double> Published::*figure) {
    return of([figure](const Published& published) { return finite(published.*figure); });
  };
  const auto words = [&](std::string Published::*text) {
    return of([text](const Published& published) {
      return (published.*text).empty() ? Cell() : Cell(published.*text);
    });
  };
  return {
      {page_column("published", kSeconds, 0, Column::kPage), of(error_figure)},
      {data_column("published/step_time_s", kPrograms, kSparse), number(&Published::step_time)},
      {data_column("published/throughput", kPrograms, kSparse), number(&Published::throughput)},
      {data_column("published/speedup", kPrograms, kSparse), number(&Published::speedup)},
      {table_column("collectives\n(published)", "published/collectives", kCount, 5, Column::kAll,
                    kSparse),
       of(&Published::collectives)},
      {data_column("published/accuracy", kPrograms, kSparse), number(&Published::accuracy)},
      {data_column("published/buckets", Column::kJson), of([](const Published& published) {
         return published.buckets.empty() ? Cell() : Cell(buckets_json(published.buckets));
       })},
      {table_column("use", "published/use", kText, 2, Column::kAll, kSparse),
       of([](const Published& published) {
         return published.calibrated ? "calibrated" : "predicted";
       })},
      {data_column("published/source", kPrograms, kSparse), words(&Published::source)},
      {data_column("published/note", kPrograms, kSparse), words(&Published::note)},
      {table_column("error", "error_percent", kPercent, 0, Column::kAll, kSparse),
       [](const measure::Row& row) { return finite(row.error_percent); }},
      {table_column("left-out\nerror", "left_out_error_percent", kPercent, 2, Column::kAll,
                    kSparse),
       [](const measure::Row& row) { return finite(row.left_out_error_percent); }},
      {page_column("accuracy\n(published)", kInteger, 0, Column::kPage), of(&Published::accuracy)}};
}

// Returns fields of a row's name: its place in the sweep, its strategy, and the executor if there
// are several.
std::vector<RowField> naming_fields(const std::vector<measure::Row>& rows,
                                    const std::vector<Axis>& axes) {
  using enum Kind;
  std::vector<RowField> named;
  for (const auto& axis : axes) {
    const bool numbers = std::all_of(rows.begin(), rows.end(), [&](const measure::Row& row) {
      const Json* value = axis_value(row, axis);
      return value == nullptr || value->is_number();
    });
    named.push_back({page_column(axis.name, numbers ? kInteger : kText),
                     [axis](const measure::Row& row) { return value_text(row, axis); }});
  }
  const bool several = std::any_of(rows.begin(), rows.end(), [&](const measure::Row& row) {
    return row.executor != rows.front().executor;
  });
  const int executor = several ? Column::kAll : kPrograms;
  named.push_back({table_column("strategy", "strategy"), &measure::Row::strategy});
  named.push_back(
      {table_column("executor", "executor", kText, 0, executor), &measure::Row::executor});
  return named;
}

// Returns fields of the sweep for programs: an object in JSON, columns in CSV.
std::vector<RowField> sweep_fields(const std::vector<Axis>& axes) {
  std::vector<RowField> swept{{data_column("sweep", Column::kJson), [](const measure::Row& row) {
                                 Json sweep = Json::object();
                                 for (const auto& [path, value] : row.sweep) sweep[path] = value;
                                 return sweep;
                               }}};
  for (const auto& axis : axes) {
    swept.push_back({table_column(axis.path, "", Kind::kText, 0, Column::kCsv),
                     [axis](const measure::Row& row) { return value_text(row, axis); }});
  }
  return swept;
}

// Returns fields of intervals, memory and buckets for programs.
std::vector<RowField> program_fields() {
  const auto memory = [](auto of) {
    return [of](const measure::Row& row) {
      return row.memory.total() > 0 ? Cell(of(row.memory)) : Cell();
    };
  };
  return {{data_column("step_time_*_s", kPrograms, kSparse),
           [](const measure::Row& row) { return known(row.step); }},
          {data_column("speedup_*", kPrograms, kSparse),
           [](const measure::Row& row) { return known(row.gain); }},
          {data_column("memory_bytes", Column::kCsv, kSparse),
           memory([](const measure::Memory& of) { return of.total(); })},
          {data_column("memory_bytes", Column::kJson), memory(memory_json)},
          // Buckets can be many: they are listed if there are published ones to compare them with.
          {data_column("buckets", Column::kJson), [](const measure::Row& row) {
             const bool compared = row.published && !row.published->buckets.empty();
             return compared ? Cell(buckets_json(row.buckets)) : Cell();
           }}};
}

}  // namespace

std::vector<Field<measure::Row>> run_fields(const std::vector<measure::Row>& rows,
                                            const std::string& baseline, int causes) {
  const std::vector<Axis> axes = axes_of(rows);
  return fields<measure::Row>(naming_fields(rows, axes), sweep_fields(axes),
                              predicted_fields(rows, baseline, causes), program_fields(),
                              fabric_job_fields(), published_fields());
}

Table named_rows(const std::vector<measure::Row>& rows, std::vector<Field<measure::Row>> more) {
  return table_of(fields<measure::Row>(naming_fields(rows, axes_of(rows)), std::move(more)), rows);
}

Table run_rows(const std::vector<measure::Row>& rows, const std::string& baseline, int causes) {
  return table_of(run_fields(rows, baseline, causes), rows);
}

Json rows_json(const std::vector<measure::Row>& rows) {
  const auto fields = run_fields(rows, "", Column::kAll);
  const std::vector<Column> columns = columns_of(fields);
  Json list = Json::array();
  for (const auto& row : rows) list.push_back(json_of(columns, {cells_of(fields, row)}));
  return list;
}

void put_predicted(Json& object, const measure::Metrics& metrics) {
  measure::Row row;
  row.metrics = metrics;
  row.speedup = std::numeric_limits<double>::quiet_NaN();
  const auto fields = predicted_fields({}, "", Column::kAll);
  object.update(json_of(columns_of(fields), {cells_of(fields, row)}));
}

// Decides the columns: sparse ones without a value in the first row are left out, intervals stay.
void CsvStream::begin(const measure::Row& first) {
  fields_ = run_fields({first}, "", Column::kAll);
  table_ = table_of(fields_, {first});
  const auto& cells = table_.lines.front().cells;
  for (std::size_t c = 0; c < cells.size(); ++c) {
    Column& column = table_.columns[c];
    if (column.sparse == Column::kNone) continue;
    const bool interval = column.key.find('*') != std::string::npos;
    if (!interval && !cells[c].has_value()) column.forms = Column::kNone;
    column.sparse = Column::kNone;
  }
}

void CsvStream::put(const measure::Row& row) {
  if (count_ == 0) begin(row);
  table_.lines = {{cells_of(fields_, row)}};
  out_ << (count_ == 0 ? csv_text(table_) : csv_lines(table_)) << std::flush;
  ++count_;
}

}  // namespace syncline::reports
