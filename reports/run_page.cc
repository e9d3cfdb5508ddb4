#include "reports/run_report.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/json/text.h"
#include "reports/format.h"
#include "reports/verdict.h"

namespace syncline::reports {
namespace {

// Buckets beyond these are counted, not listed.
constexpr std::size_t kBucketsAtMost = 12;

bool any(const std::vector<measure::Row>& rows,
         const std::function<bool(const measure::Row&)>& holds) {
  return std::any_of(rows.begin(), rows.end(), holds);
}

// Rules stand between sweep points, unless every row is a point of its own.
Grid ruled(Table table, const std::vector<measure::Row>& rows) {
  std::size_t changes = 0;
  for (std::size_t i = 1; i < rows.size(); ++i) changes += same_point(rows[i - 1], rows[i]) ? 0 : 1;
  for (std::size_t i = 1; i < rows.size() && changes + 1 < rows.size(); ++i) {
    table.lines[i].rule_before = !same_point(rows[i - 1], rows[i]);
  }
  return grid_of(table);
}

Grid main_grid(const measure::Report& report) {
  Grid grid = ruled(run_rows(report.rows, report.baseline), report.rows);
  const auto tones = tones_of(report);
  for (std::size_t i = 0; i < tones.size(); ++i) grid.lines[i].tone = tones[i];
  return grid;
}

Grid split_grid(const measure::Split& split, const std::string& baseline) {
  return ruled(run_rows(split.rows, baseline, Column::kCsv), split.rows);
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
  std::vector<measure::Row> listed;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(listed), has_published_buckets);
  const auto texts = [](const measure::Row& row) {
    return cells(buckets_text(row.buckets), buckets_text(row.published->buckets));
  };
  const auto more = columns(shown("buckets in order, as tensors of MiB"), shown("published"));
  return ruled(named_rows(listed, more, texts), listed);
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

// What DiLoCo's papers judge a link by: "Computation is 95.2 % of a step of DiLoCo at ..."; of the
// first few rows.
std::string utilisation_sentence(const measure::Report& report) {
  constexpr std::size_t kFew = 6;
  const auto axes = axes_of(report.rows);
  std::vector<std::string> parts;
  for (const measure::Row& row : report.rows) {
    const bool outer = std::ranges::find(report.outer, row.strategy) != report.outer.end();
    if (!outer || parts.size() == kFew) continue;
    const std::string at = point_text(row, axes);
    parts.push_back(share_text(100 * row.metrics.compute / row.metrics.step_time) + " with " +
                    one_line(row.strategy) + (at.empty() ? "" : " at " + at));
  }
  return "Utilisation, the part of a step that computes: " + join_and(parts) + ".";
}

// How fast each row is; what its time is made of is in the whole page. Memory where it decides.
Grid brief_grid(const measure::Report& report) {
  constexpr int kHowFast = 4;
  std::vector<std::string> left_out;
  if (report.shortage.empty()) left_out.emplace_back("memory\na GPU");
  Table table = narrowed(run_rows(report.rows, report.baseline), kHowFast, left_out);
  Grid grid = ruled(std::move(table), report.rows);
  const auto tones = tones_of(report);
  for (std::size_t i = 0; i < tones.size(); ++i) grid.lines[i].tone = tones[i];
  return grid;
}

// Where all rows do not fit a screen: the fastest of each point of the sweep and its baseline.
measure::Report screenful(const measure::Report& report) {
  constexpr std::size_t kMost = 10;
  if (report.rows.size() <= kMost) return report;
  measure::Report shown = report;
  shown.rows.clear();
  const auto same_point = [](const measure::Row& a, const measure::Row& b) {
    return a.sweep == b.sweep;
  };
  std::size_t points = 0;
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    points += i == 0 || !same_point(report.rows[i - 1], report.rows[i]) ? 1 : 0;
  }
  const std::size_t each = std::max<std::size_t>(2, kMost / points);
  for (auto first = report.rows.begin(); first != report.rows.end();) {
    const auto last = std::find_if(first, report.rows.end(),
                                   [&](const auto& row) { return !same_point(*first, row); });
    std::vector<Seconds> times;
    for (auto row = first; row != last; ++row) {
      if (row->strategy != report.baseline) times.push_back(row->metrics.step_time);
    }
    std::sort(times.begin(), times.end());
    const Seconds slowest = times.size() < each ? 1e300 : times[each - 2];
    std::size_t left = each - 1;
    for (auto row = first; row != last; ++row) {
      const bool baseline = row->strategy == report.baseline;
      if (!baseline && (row->metrics.step_time > slowest || left == 0)) continue;
      left -= baseline ? 0 : 1;
      shown.rows.push_back(*row);
    }
    first = last;
  }
  if (shown.rows.size() > kMost + 2) shown.rows.resize(kMost);
  return shown;
}

}  // namespace

Page brief_of(const measure::Report& report) {
  Page page;
  add_paragraph(page, verdict(report));
  if (!report.shortage.empty()) add_paragraph(page, "Does not fit: " + report.shortage + ".");
  if (!report.complete) {
    add_paragraph(page, "Interrupted: this report is incomplete, it has the rows computed so far.");
  }
  const measure::Report shown = screenful(report);
  if (!shown.rows.empty()) page.blocks.emplace_back(brief_grid(shown));
  if (!report.inexact.empty()) add_paragraph(page, accuracy_sentence(report));
  add_paragraph(page, agreement_sentence(report));
  std::string source = one_line(report.scenario);
  if (!report.workload.empty()) source += ", " + one_line(report.workload);
  if (!report.cluster.empty()) source += " on " + one_line(report.cluster);
  source += ". " + figures_sentence(report);
  if (const std::size_t more = report.rows.size() - shown.rows.size(); more > 0) {
    source += " " + plural(more, "more row") + ".";
  }
  add_paragraph(page, source);
  return page;
}

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
  if (!report.outer.empty()) add_paragraph(page, utilisation_sentence(report));
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
