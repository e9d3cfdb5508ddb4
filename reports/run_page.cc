#include "reports/run_report.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/json/text.h"
#include "reports/axes.h"
#include "reports/fields.h"
#include "reports/format.h"
#include "reports/verdict.h"

namespace syncline::reports {
namespace {

// Buckets beyond these are counted, not listed.
constexpr std::size_t kBucketsAtMost = 12;

// What a row is called and how fast it is stays longest on a narrow screen, then what is published
// of it; causes leave first.
struct GridColumn {
  std::string heading;
  bool right = true;
  std::function<std::string(const measure::Row&)> cell;
  int rank = 0;  // Grid::Column::rank
};

// Columns --------------------------------------------------------------------------------------

bool any(const std::vector<measure::Row>& rows,
         const std::function<bool(const measure::Row&)>& holds) {
  return std::any_of(rows.begin(), rows.end(), holds);
}

std::vector<GridColumn> naming_columns(const std::vector<measure::Row>& rows) {
  std::vector<GridColumn> columns;
  for (const auto& axis : axes_of(rows)) {
    const bool numbers = std::all_of(rows.begin(), rows.end(), [&](const measure::Row& row) {
      const Json* value = value_on(row, axis);
      return value == nullptr || value->is_number();
    });
    columns.push_back(
        {axis.name, numbers, [axis](const measure::Row& row) { return value_text(row, axis); }});
  }
  columns.push_back({"strategy", false, [](const measure::Row& row) { return row.strategy; }});
  if (any(rows, [&](const measure::Row& row) { return row.executor != rows.front().executor; })) {
    columns.push_back({"executor", false, [](const measure::Row& row) { return row.executor; }});
  }
  return columns;
}

template <Seconds measure::Metrics::*member>
std::string seconds_cell(const measure::Row& row) {
  return seconds_text(row.metrics.*member);
}

std::vector<GridColumn> speed_columns(const std::vector<measure::Row>& rows,
                                      const std::string& baseline) {
  std::vector<GridColumn> columns{
      {"step\ntime", true, seconds_cell<&measure::Metrics::step_time>},
      {"80 %\ninterval", true,
       [](const measure::Row& row) { return seconds_range(row.step.low, row.step.high); }, 1},
      {"throughput,\nsamples/s", true,
       [](const measure::Row& row) { return throughput_text(row.metrics.throughput); }, 7},
      {"speedup over\n" + one_line(baseline), true,
       [](const measure::Row& row) { return speedup_text(row.speedup); }},
      {"80 %\ninterval", true,
       [](const measure::Row& row) { return speedup_range(row.gain.low, row.gain.high); }, 4}};
  // Rows that were put together by hand have none.
  std::erase_if(columns, [&](const GridColumn& column) {
    return !any(rows, [&](const measure::Row& row) { return !column.cell(row).empty(); });
  });
  return columns;
}

// Rows that were put together by hand have none.
std::vector<GridColumn> memory_columns(const std::vector<measure::Row>& rows) {
  if (!any(rows, [](const measure::Row& row) { return row.memory.total() > 0; })) return {};
  return {
      {"memory\na GPU", true, [](const measure::Row& row) { return memory_cell(row.memory); }, 2}};
}

std::vector<GridColumn> cause_columns() {
  return {{"collectives\nper step", true,
           [](const measure::Row& row) { return count_text(row.metrics.collectives); }, 5},
          {"sent\nper rank", true,
           [](const measure::Row& row) { return bytes_text(row.metrics.bytes_on_wire); }, 8},
          {"compute", true, seconds_cell<&measure::Metrics::compute>, 6},
          {"exposed\ncomm.", true, seconds_cell<&measure::Metrics::exposed>, 3},
          {"lower\nbound", true, seconds_cell<&measure::Metrics::lower_bound>, 9}};
}

// The published figure that the error is about.
std::string published_figure(const measure::Row& row) {
  if (!row.published) return "";
  if (row.published->step_time) return seconds_text(*row.published->step_time);
  if (row.published->throughput) return throughput_text(*row.published->throughput) + " /s";
  if (row.published->speedup) return speedup_text(*row.published->speedup);
  return "";
}

std::string percent_cell(const std::optional<double>& percent) {
  return percent ? percent_text(*percent) : "";
}

// Only those in which some row has something to say.
std::vector<GridColumn> comparison_columns(const std::vector<measure::Row>& rows) {
  std::vector<GridColumn> columns{
      {"published", true, published_figure},
      {"collectives\n(published)", true,
       [](const measure::Row& row) {
         if (!row.published || !row.published->collectives) return std::string();
         return count_text(static_cast<double>(*row.published->collectives));
       },
       5},
      {"use", false,
       [](const measure::Row& row) {
         return row.published ? std::string(use_of(*row.published)) : "";
       },
       2},
      {"error", true, [](const measure::Row& row) { return percent_cell(row.error_percent); }},
      {"left-out\nerror", true,
       [](const measure::Row& row) { return percent_cell(row.left_out_error_percent); }, 2},
      {"accuracy\n(published)", true, [](const measure::Row& row) {
         if (!row.published || !row.published->accuracy) return std::string();
         return exact(*row.published->accuracy).dump();
       }}};
  std::erase_if(columns, [&](const GridColumn& column) {
    return !any(rows, [&](const measure::Row& row) { return !column.cell(row).empty(); });
  });
  return columns;
}

// Grids ----------------------------------------------------------------------------------------

Grid grid_of(const std::vector<measure::Row>& rows, const std::vector<GridColumn>& columns) {
  Grid grid;
  for (const auto& column : columns)
    grid.columns.push_back({column.heading, column.right, column.rank});
  // Rules stand between sweep points, unless every row is a point of its own.
  std::size_t changes = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Grid::Line line;
    for (const auto& column : columns) line.cells.push_back(column.cell(rows[i]));
    line.rule_before = i > 0 && !same_point(rows[i - 1], rows[i]);
    if (line.rule_before) ++changes;
    grid.lines.push_back(std::move(line));
  }
  if (changes + 1 >= rows.size()) {
    for (auto& line : grid.lines) line.rule_before = false;
  }
  return grid;
}

void append(std::vector<GridColumn>& columns, std::vector<GridColumn> more) {
  std::move(more.begin(), more.end(), std::back_inserter(columns));
}

Grid main_grid(const measure::Report& report) {
  std::vector<GridColumn> columns = naming_columns(report.rows);
  append(columns, speed_columns(report.rows, report.baseline));
  append(columns, memory_columns(report.rows));
  append(columns, cause_columns());
  append(columns, comparison_columns(report.rows));
  Grid grid = grid_of(report.rows, columns);
  const auto tones = tones_of(report);
  for (std::size_t i = 0; i < tones.size(); ++i) grid.lines[i].tone = tones[i];
  return grid;
}

Grid split_grid(const measure::Split& split, const std::string& baseline) {
  std::vector<GridColumn> columns = naming_columns(split.rows);
  append(columns, speed_columns(split.rows, baseline));
  append(columns, comparison_columns(split.rows));
  return grid_of(split.rows, columns);
}

// Text under the table -------------------------------------------------------------------------

// "3 of 3.9 MiB, 160 of 25 MiB"
std::string buckets_text(const std::vector<std::pair<std::int64_t, double>>& buckets) {
  std::string text;
  for (std::size_t i = 0; i < std::min(buckets.size(), kBucketsAtMost); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(buckets[i].first) + " of " + plain_number(buckets[i].second) + " MiB";
  }
  if (buckets.size() > kBucketsAtMost) {
    text += " and " + std::to_string(buckets.size() - kBucketsAtMost) + " more";
  }
  return text;
}

bool has_published_buckets(const measure::Row& row) {
  return row.published && !row.published->buckets.empty();
}

Grid buckets_grid(const std::vector<measure::Row>& rows) {
  std::vector<measure::Row> shown;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(shown), has_published_buckets);
  std::vector<GridColumn> columns = naming_columns(shown);
  columns.push_back({"buckets in order, as tensors of MiB", false,
                     [](const measure::Row& row) { return buckets_text(row.buckets); }});
  columns.push_back({"published", false,
                     [](const measure::Row& row) { return buckets_text(row.published->buckets); }});
  return grid_of(shown, columns);
}

std::string parameters_text(const std::vector<measure::Fitted>& parameters) {
  std::vector<std::string> texts;
  for (const auto& fitted : parameters) {
    texts.push_back(fitted.path + " = " + copied_number(fitted.value));
  }
  return join_and(texts);
}

// Notes of published rows; the same note of several rows is printed once.
std::vector<std::string> notes_of(const std::vector<measure::Row>& rows) {
  std::vector<std::pair<std::string, std::vector<const measure::Row*>>> notes;
  for (const auto& row : rows) {
    if (!row.published || row.published->note.empty()) continue;
    const auto known = std::find_if(notes.begin(), notes.end(), [&](const auto& note) {
      return note.first == row.published->note;
    });
    if (known != notes.end()) {
      known->second.push_back(&row);
    } else {
      notes.push_back({row.published->note, {&row}});
    }
  }
  const auto axes = axes_of(rows);
  std::vector<std::string> texts;
  for (const auto& [note, about] : notes) {
    std::string who = about.size() == 1 ? about.front()->strategy : plural(about.size(), "row");
    if (about.size() == 1 && !axes.empty()) {
      who += " at ";
      who += point_text(*about.front(), axes);
    }
    texts.push_back(who + ": " + note);
  }
  return texts;
}

void add_paragraph(Page& page, const std::string& text) {
  if (!text.empty()) page.blocks.emplace_back(one_line(text));
}

void add_items(Page& page, const std::string& heading, const std::vector<std::string>& items) {
  if (!items.empty()) page.blocks.emplace_back(Items{heading, items});
}

std::string setting_text(const measure::Report& report) {
  std::string text;
  if (!report.workload.empty()) text += "Workload " + report.workload;
  if (!report.cluster.empty()) text += (text.empty() ? "Cluster " : ", cluster ") + report.cluster;
  return text.empty() ? text : text + ".";
}

// One line for each part of the sweep that was fitted on its own.
void add_fitted(Page& page, const measure::Report& report) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < report.fitted.size();) {
    std::vector<measure::Fitted> together;
    const SweepPoint& at = report.fitted[i].at;
    for (; i < report.fitted.size() && report.fitted[i].at == at; ++i) {
      together.push_back(report.fitted[i]);
    }
    std::string where;
    for (const auto& [path, value] : at) {
      where += (where.empty() ? "" : ", ") + path + " = " + plain_text(value);
    }
    lines.push_back((where.empty() ? "" : where + ": ") + parameters_text(together));
  }
  if (lines.size() == 1) {
    add_paragraph(page, "Calibrated: " + lines.front() + ".");
  } else {
    add_items(page, "Calibrated:", lines);
  }
}

void add_splits(Page& page, const measure::Report& report) {
  for (const auto& split : report.splits) {
    add_paragraph(page, "Left out of the calibration: " + split.left_out +
                            ". Fitted to the rest: " + parameters_text(split.parameters) + ".");
    if (!split.rows.empty()) page.blocks.emplace_back(split_grid(split, report.baseline));
  }
}

}  // namespace

Page page_of(const measure::Report& report) {
  Page page{one_line(report.scenario), one_line(report.about), {}};
  if (!report.shortage.empty()) add_paragraph(page, "Does not fit: " + report.shortage + ".");
  add_paragraph(page, setting_text(report));
  if (!report.complete) {
    add_paragraph(page, "Interrupted: this report is incomplete, it has the rows computed so far.");
  }
  if (!report.rows.empty()) page.blocks.emplace_back(main_grid(report));
  if (any(report.rows, has_published_buckets)) page.blocks.emplace_back(buckets_grid(report.rows));
  add_fitted(page, report);
  add_splits(page, report);
  add_paragraph(page, verdict(report));
  add_paragraph(page, agreement_sentence(report));
  if (!report.out_of_range.empty()) {
    add_paragraph(page, "Out of the calibrated range: " + report.out_of_range + ".");
  }
  add_paragraph(page, figures_sentence(report));
  if (!report.inexact.empty()) add_paragraph(page, accuracy_sentence(report));
  add_items(page, "Notes on published figures:", notes_of(report.rows));
  add_items(page, "Sources:", report.sources);
  return page;
}

}  // namespace syncline::reports
