#include "reports/run_report.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "formats/json/text.h"
#include "reports/format.h"
#include "reports/run_figures.h"
#include "reports/run_rows.h"
#include "reports/verdict.h"

namespace syncline::reports {
namespace {

// Buckets beyond this number are counted, not listed.
constexpr std::size_t kBucketsAtMost = 12;

// Puts rules between sweep points, unless every row is a point of its own.
Grid ruled(Table table, const std::vector<measure::Row>& rows) {
  std::size_t changes = 0;
  for (std::size_t i = 1; i < rows.size(); ++i) changes += same_point(rows[i - 1], rows[i]) ? 0 : 1;
  for (std::size_t i = 1; i < rows.size() && changes + 1 < rows.size(); ++i) {
    table.lines[i].rule_before = !same_point(rows[i - 1], rows[i]);
  }
  return grid_of(table);
}

// Gives each row its tone.
Grid toned(Table table, const measure::Report& report) {
  Grid grid = ruled(std::move(table), report.rows);
  const auto tones = tones_of(report);
  for (std::size_t i = 0; i < tones.size(); ++i) grid.lines[i].tone = tones[i];
  return grid;
}

// Text under the table -------------------------------------------------------------------------

// Returns "3 of 3.9 MiB, 160 of 25 MiB".
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
  std::vector<Field<measure::Row>> more{
      {page_column("buckets in order, as tensors of MiB"),
       [](const measure::Row& row) { return buckets_text(row.buckets); }},
      {page_column("published"),
       [](const measure::Row& row) { return buckets_text(row.published->buckets); }}};
  return ruled(named_rows(listed, std::move(more)), listed);
}

std::string parameters_text(const std::vector<measure::Fitted>& parameters) {
  std::vector<std::string> texts;
  for (const auto& fitted : parameters) {
    texts.push_back(fitted.path + " = " + copied_number(fitted.value));
  }
  return join_and(texts);
}

// Returns the notes of published rows; the same note of several rows is printed once.
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
  if (!text.empty()) page.add(one_line(text));
}

std::string setting_text(const measure::Report& report) {
  std::string text;
  if (!report.workload.empty()) text += "Workload " + report.workload;
  if (!report.cluster.empty()) text += (text.empty() ? "Cluster " : ", cluster ") + report.cluster;
  return text.empty() ? text : text + ".";
}

// Groups fitted values by the part of the sweep that they were fitted to.
std::vector<std::vector<measure::Fitted>> parts_of(const std::vector<measure::Fitted>& fitted) {
  std::vector<std::vector<measure::Fitted>> parts;
  for (const auto& one : fitted) {
    if (parts.empty() || parts.back().front().at != one.at) parts.emplace_back();
    parts.back().push_back(one);
  }
  return parts;
}

void add_fitted(Page& page, const measure::Report& report) {
  std::vector<std::string> lines;
  for (const auto& together : parts_of(report.fitted)) {
    std::string where;
    for (const auto& [path, value] : together.front().at) {
      where += (where.empty() ? "" : ", ") + path + " = " + plain_text(value);
    }
    lines.push_back((where.empty() ? "" : where + ": ") + parameters_text(together));
  }
  if (lines.size() == 1) {
    add_paragraph(page, "Calibrated: " + lines.front() + ".");
  } else {
    page.add(Items{"Calibrated:", lines});
  }
}

void add_splits(Page& page, const measure::Report& report) {
  for (const auto& split : report.splits) {
    add_paragraph(page, "Left out of the calibration: " + split.left_out +
                            ". Fitted to the rest: " + parameters_text(split.parameters) + ".");
    if (!split.rows.empty()) {
      page.add(ruled(run_rows(split.rows, report.baseline, Column::kCsv), split.rows));
    }
  }
}

// Returns "Utilisation, ...: 95.2 % with DiLoCo at ..." for the first few rows: the measure by
// which DiLoCo's papers judge a link.
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

// Returns how fast each row is, with memory if it decides, if tokens are counted or if a row fills
// more than half of a device. The whole page has the parts of its time.
Grid brief_grid(const measure::Report& report) {
  constexpr int kHowFast = 4;
  std::vector<std::string> left_out;
  const bool told = std::ranges::any_of(report.rows, [](const measure::Row& row) {
    const measure::Memory& memory = row.memory;
    return row.rate.tokens > 0 || (memory.available > 0 && memory.total() > memory.available / 2);
  });
  if (report.shortage.empty() && !told) left_out.emplace_back("memory\nper GPU");
  return toned(narrow_table(run_rows(report.rows, report.baseline), kHowFast, left_out), report);
}

// Returns the rows for one screen: all, or of each sweep point the baseline and the fastest.
measure::Report screenful(const measure::Report& report) {
  constexpr std::size_t kMax = 10;
  if (report.rows.size() <= kMax) return report;
  measure::Report shown = report;
  shown.rows.clear();
  const auto same_point = [](const measure::Row& a, const measure::Row& b) {
    return a.sweep == b.sweep;
  };
  std::size_t points = 0;
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    points += i == 0 || !same_point(report.rows[i - 1], report.rows[i]) ? 1 : 0;
  }
  const std::size_t each = std::max<std::size_t>(2, kMax / points);
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
  if (shown.rows.size() > kMax + 2) shown.rows.resize(kMax);
  return shown;
}

std::size_t calibrated_rows(const measure::Report& report) {
  return static_cast<std::size_t>(std::count_if(
      report.rows.begin(), report.rows.end(),
      [](const measure::Row& row) { return row.published && row.published->calibrated; }));
}

// Adds "2 rows used for calibration, 0.4 % off in the mean and 0.9 % at most".
void add_group(std::vector<std::string>& groups, const std::vector<double>& errors,
               std::string_view what) {
  if (errors.empty()) return;
  double sum = 0, most = 0;
  for (const double error : errors) {
    sum += std::fabs(error);
    most = std::max(most, std::fabs(error));
  }
  std::string text = plural(errors.size(), "row") + " " + std::string(what) + ", ";
  const std::string mean = share_text(sum / static_cast<double>(errors.size()));
  text += mean + " off";
  if (share_text(most) != mean) text += " in the mean and " + share_text(most) + " at most";
  groups.push_back(text);
}

Json parameters_json(const std::vector<measure::Fitted>& parameters) {
  Json object = Json::object();
  for (const auto& fitted : parameters) object[fitted.path] = exact(fitted.value);
  return object;
}

// Returns one object, or one for each part of the sweep that was fitted on its own.
Json calibration_json(const std::vector<measure::Fitted>& fitted) {
  if (fitted.front().at.empty()) return Json{{"parameters", parameters_json(fitted)}};
  Json parts = Json::array();
  for (const auto& together : parts_of(fitted)) {
    Json at = Json::object();
    for (const auto& [path, value] : together.front().at) at[path] = value;
    parts.push_back(Json{{"at", at}, {"parameters", parameters_json(together)}});
  }
  return Json{{"parts", parts}};
}

Json splits_json(const std::vector<measure::Split>& splits) {
  Json list = Json::array();
  for (const auto& split : splits) {
    list.push_back(Json{{"left_out", split.left_out},
                        {"parameters", parameters_json(split.parameters)},
                        {"rows", rows_json(split.rows)}});
  }
  return list;
}

Json provenance_json(const measure::Report& report) {
  Json object = Json::object();
  object["executor"] = report.executor;
  object["baseline"] = report.baseline;
  object["workload"] = report.workload;
  object["cluster"] = report.cluster;
  object["seed"] = report.seed;
  object["sources"] = report.sources;
  if (!report.out_of_range.empty()) object["out_of_range"] = report.out_of_range;
  object["figures"] = figures_sentence(report);
  if (!report.inexact.empty()) object["accuracy"] = accuracy_sentence(report);
  return object;
}

}  // namespace

namespace {

// Adds the lack of memory. If no row fits, the verdict says so instead.
void add_shortage(Page& page, const measure::Report& report) {
  const bool none =
      std::ranges::none_of(report.rows, [](const measure::Row& row) { return row.memory.fits(); });
  if (report.shortage.empty() || (none && !report.rows.empty())) return;
  add_paragraph(page, "Does not fit: " + report.shortage + ".");
}

}  // namespace

Page brief_of(const measure::Report& report) {
  Page page;
  add_paragraph(page, verdict(report));
  add_shortage(page, report);
  if (!report.complete) {
    add_paragraph(page, "Interrupted: this report is incomplete, it has the rows computed so far.");
  }
  const measure::Report shown = screenful(report);
  if (!shown.rows.empty()) page.add(brief_grid(shown));
  if (!report.inexact.empty()) add_paragraph(page, accuracy_sentence(report));
  add_paragraph(page, agreement_sentence(report));
  std::string job = one_line(report.workload);
  if (!report.cluster.empty()) job += (job.empty() ? "" : " on ") + one_line(report.cluster);
  std::string source = one_line(report.scenario);
  if (!job.empty() && job != source) source += ", " + job;
  source += ". " + figures_sentence(report);
  if (const std::size_t more = report.rows.size() - shown.rows.size(); more > 0) {
    source += " " + plural(more, "more row") + ".";
  }
  add_paragraph(page, source);
  return page;
}

Page page_of(const measure::Report& report) {
  Page page{one_line(report.scenario), one_line(report.about), {}};
  add_shortage(page, report);
  add_paragraph(page, setting_text(report));
  if (!report.complete) {
    add_paragraph(page, "Interrupted: this report is incomplete, it has the rows computed so far.");
  }
  if (!report.rows.empty()) page.add(toned(run_rows(report.rows, report.baseline), report));
  if (std::ranges::any_of(report.rows, has_published_buckets)) page.add(buckets_grid(report.rows));
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
  page.add(Items{"Notes on published figures:", notes_of(report.rows)});
  page.add(Items{"Sources:", report.sources});
  return page;
}

std::string figures_sentence(const measure::Report& report) {
  std::vector<std::string> executors;
  for (const auto& row : report.rows) {
    if (std::find(executors.begin(), executors.end(), row.executor) == executors.end()) {
      executors.push_back(row.executor);
    }
  }
  if (executors.empty()) executors.push_back(report.executor);
  std::string text = "All figures are predicted by the " + join_and(executors) +
                     (executors.size() == 1 ? " executor" : " executors") + ", none is measured";
  const std::size_t rows = calibrated_rows(report);
  if (rows == 0 && report.fitted.empty()) return text + ".";
  // A scenario may also carry parameters that were fitted before it was written.
  const std::string what = report.fitted.empty() ? "the scenario is"
                                                 : plural(report.fitted.size(), "parameter") +
                                                       (report.fitted.size() == 1 ? " is" : " are");
  // The fit itself runs on the model, whichever executor evaluates the rows
  // (studies/study/study_calibration.h).
  const std::string by = report.fitted.empty() ? "" : " with the model executor";
  return text + "; " + what + " calibrated" + by + " on the " + plural(rows, "published row") +
         " marked calibrated.";
}

std::string accuracy_sentence(const measure::Report& report) {
  if (report.inexact.empty()) return {};
  const bool one = report.inexact.size() == 1;
  return join_and(report.inexact) + (one ? " changes" : " change") +
         " the training; the effect on accuracy is not predicted.";
}

std::string agreement_sentence(const measure::Report& report) {
  std::vector<double> fitted, predicted, left_out;
  for (const auto& row : report.rows) {
    if (!row.published || measure::is_trivial(row, report)) continue;
    if (row.error_percent) {
      (row.published->calibrated ? fitted : predicted).push_back(*row.error_percent);
    }
    if (row.left_out_error_percent) left_out.push_back(*row.left_out_error_percent);
  }
  std::vector<std::string> groups;
  add_group(groups, fitted, "used for calibration");
  add_group(groups, predicted, "not used for calibration");
  add_group(groups, left_out, "left out of the calibration in turn");
  return groups.empty() ? "" : "Against published figures: " + join(groups, "; ") + ".";
}

Json json_of(const measure::Report& report) {
  Json object = Json::object();
  if (!report.complete) object["complete"] = false;
  if (!report.shortage.empty()) object["does_not_fit"] = report.shortage;
  if (const std::string failure = fit_failure(report); !failure.empty()) {
    object["fit_failed"] = failure;
  }
  object["rows"] = rows_json(report.rows);
  if (!report.fitted.empty()) object["calibration"] = calibration_json(report.fitted);
  if (!report.splits.empty()) object["splits"] = splits_json(report.splits);
  object["provenance"] = provenance_json(report);
  return object;
}

Answer answer_of(const measure::Report& report) {
  Answer answer = make_answer(
      "run", report.scenario, report, page_of,
      [](const measure::Report& of) { return run_rows(of.rows, of.baseline); }, json_of,
      report.warnings, figures_of);
  answer.brief = [&] { return brief_of(report); };
  return answer;
}

}  // namespace syncline::reports
