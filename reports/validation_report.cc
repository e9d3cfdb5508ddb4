#include "reports/validation_report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/statistics.h"
#include "formats/scenario/scenario.h"
#include "reports/format.h"
#include "reports/page.h"
#include "reports/table.h"

namespace syncline::reports {
namespace {

std::string tier_words(const Tier& tier) {
  return one_line(tier.name) + " " + plain_number(tier.latency / kMicrosecond) + " us and " +
         plain_number(tier.bandwidth / kGigabitPerSecond) + " Gbit/s";
}

Cell match_cell(const std::optional<bool>& match) {
  return show_as(or_null(match), !match ? "not checked" : *match ? "equal" : "WRONG");
}

// Makes a table of the predictions of each row by kind of operation; for programs, of one row.
Table kinds_table() {
  using enum Kind;
  return {columns(page_column("strategy"), table_column("operations", "kind"),
                  table_column("a step", "operations", kCount),
                  table_column("predicted", "predicted_s", kSeconds),
                  table_column("measured", "measured_s", kSeconds),
                  page_column("error", kPercent))};
}

Table::Line& add_kind(Table& kinds, const std::string& strategy, const measure::KindTime& kind) {
  const double error = kind.measured > 0 ? kind.predicted / kind.measured - 1 : 0;
  return kinds.add(strategy, kind.kind, kind.operations, kind.predicted, kind.measured,
                   error * 100);
}

Table kinds_of(const measure::Validation& validation) {
  Table kinds = kinds_table();
  for (const auto& row : validation.rows) {
    bool first = true;
    for (const auto& kind : row.kinds) {
      if (kind.predicted == 0 && kind.measured < 1e-6) continue;
      const bool rule = first && !kinds.lines.empty();
      add_kind(kinds, first ? row.strategy : "", kind).rule_before = rule;
      first = false;
    }
  }
  return kinds;
}

Json kinds_json(const measure::ValidatedRow& row) {
  Table kinds = kinds_table();
  for (const auto& kind : row.kinds) add_kind(kinds, "", kind);
  return json_of(kinds);
}

std::vector<Field<measure::ValidatedRow>> fields_of(const measure::Validation& validation) {
  using enum Kind;
  using measure::ValidatedRow;
  using Row = const ValidatedRow&;
  return {
      {{"strategy", "strategy"}, &ValidatedRow::strategy},
      {{"predicted", "predicted_s", kSeconds}, &ValidatedRow::predicted},
      {{"80 %\ninterval", "predicted_*_s", kSeconds, 3}, &ValidatedRow::interval},
      {{"measured\nmedian", "measured_median_s", kSeconds}, &ValidatedRow::median},
      {{"measured\np95", "measured_p95_s", kSeconds, 4}, &ValidatedRow::p95},
      {{"error", "error_percent", kPercent}, [](Row row) { return row.error() * 100; }},
      {data_column("values_match"), [](Row row) { return or_null(row.values_match); }},
      {data_column("bytes_sent", Column::kJson), [](Row row) { return or_null(row.bytes_sent); }},
      {{"speedup,\nmeasured", "speedup", kSpeedup, 1, Column::kNoCsv},
       [&validation](Row row) { return measure::measured_speedup(validation, row); }},
      {{"speedup,\npublished", "published_speedup", kSpeedup, 2, Column::kNoCsv, Column::kPage},
       &ValidatedRow::published_speedup},
      {page_column("sent\nper step", kBytes, 5),
       [](Row row) {
         const Cell sent(row.bytes_sent);
         return row.bytes_sent ? sent : show_as(sent, "not counted");
       }},
      {page_column("values"), [](Row row) { return match_cell(row.values_match); }},
      {data_column("steps_s", Column::kJson),
       [](Row row) {
         Json steps = Json::array();
         for (const Seconds step : row.steps) steps.push_back(exact(step));
         return row.steps.empty() ? Cell() : Cell(steps);
       }},
      {data_column("kinds", Column::kJson),
       [](Row row) { return row.kinds.empty() ? Cell() : Cell(kinds_json(row)); }}};
}

Table rows_of(const measure::Validation& validation) {
  return table_of(fields_of(validation), validation.rows);
}

Table samples_of(const measure::Validation& validation) {
  using enum Kind;
  Table samples{columns(table_column("what", "what"), table_column("payload", "bytes", kBytes),
                        table_column("measured", "measured_s", kSeconds),
                        table_column("fitted", "fitted_s", kSeconds),
                        page_column("error", kPercent))};
  for (const auto& s : validation.samples) {
    samples.add(s.what, s.bytes, s.measured, s.fitted, (s.fitted / s.measured - 1) * 100);
  }
  return samples;
}

std::string errors_sentence(const measure::Validation& validation) {
  std::vector<double> errors;
  for (const auto& row : validation.rows) errors.push_back(std::abs(row.error()) * 100);
  if (errors.empty()) return "Nothing was measured.";
  const auto held =
      std::count_if(validation.rows.begin(), validation.rows.end(),
                    [](const measure::ValidatedRow& row) { return row.is_in_interval(); });
  return "Predicted by the " + validation.executor +
         " executor before it was measured: " + plural(errors.size(), "row") + ", median error " +
         share_text(median(errors)) + ", worst " + share_text(percentile(errors, 1)) +
         "; the 80 % intervals contain " + std::to_string(held) + " of the medians.";
}

std::string values_sentence(const measure::Validation& validation) {
  std::vector<std::string> wrong;
  std::size_t checked = 0;
  for (const auto& row : validation.rows) {
    checked += row.values_match.has_value() ? 1 : 0;
    if (row.values_match && !*row.values_match) wrong.push_back(quoted_name(row.strategy));
  }
  if (checked == 0) return "The communicated values were not checked.";
  if (wrong.empty()) return "Every communicated value equals the host executor's, on every rank.";
  return "WRONG VALUES: " + join_and(wrong) + " did not end with the host executor's values.";
}

// Returns speedups of compute fusion over the baseline, if both ran kernels instead of timers.
Items fusion_items(const measure::Validation& validation) {
  Items items{"Against " + quoted_name(validation.baseline), {}};
  const auto baseline =
      std::find_if(validation.rows.begin(), validation.rows.end(),
                   [&](const auto& row) { return row.strategy == validation.baseline; });
  if (!validation.operators || baseline == validation.rows.end()) return items;
  for (const auto& row : validation.rows) {
    if (row.strategy == validation.baseline) continue;
    items.items.push_back(one_line(row.strategy) + ": predicted " +
                          speedup_text(baseline->predicted / row.predicted) + ", measured " +
                          speedup_text(baseline->median / row.median));
  }
  return items;
}

Page page_of(const measure::Validation& validation) {
  Page page;
  page.title = validation.scenario;
  page.about =
      validation.workload + " on " + plural(validation.ranks, "rank") + ", " + validation.cluster;
  page.add(errors_sentence(validation));
  page.add(rows_of(validation));
  page.add(fusion_items(validation));
  page.add(values_sentence(validation));
  for (const auto& sentence : measure::link_advice(validation)) page.add(sentence);
  if (!validation.complete) page.add("Interrupted: the rows so far.");
  page.add(
      std::string("By kind of operation, a step (those of collectives include waiting for the "
                  "other ranks):"));
  page.add(kinds_of(validation));
  if (!validation.samples.empty()) {
    page.add(
        "Links, calibrated live from the following before any step was "
        "predicted: " +
        validation.links + ".");
    page.add(samples_of(validation));
  } else {
    page.add("Links as the scenario has them: " + validation.links + ".");
  }
  page.add(
      Items{"Measured",
            {"with " + validation.hardware,
             plural(validation.repeats, "step") + " a row after " +
                 std::to_string(validation.warmup) + " to warm up",
             "clocks of the ranks agree to " + seconds_text(validation.clock_error),
             validation.operators
                 ? "computation is the workload's operators; those without a kernel pass their time"
                 : "computation is stood in for by timers of the plan's durations"}});
  return page;
}

Page links_page(const measure::Validation& validation) {
  Page page;
  page.title = "Links of " + one_line(validation.cluster);
  page.about = "measured by " + plural(validation.ranks, "rank");
  if (!validation.links.empty()) page.add("Links: " + validation.links + ".");
  page.add(samples_of(validation));
  page.add(
      "Ring all-reduces give each level its curve of a round's time over the bytes a "
      "rank sends in it, so they have no error. All-gathers and all-reduces across "
      "nodes were left out and are predicted by the curves. A device has one cost of a launch and "
      "one of memory for encoding and decoding: it is fitted to the encodings, and "
      "short decodings are overpriced by the launch.");
  return page;
}

Json json_of(const measure::Validation& validation) {
  Json json = Json::object();
  json["date"] = validation.date;
  json["workload"] = validation.workload;
  json["cluster"] = validation.cluster;
  json["backend"] = validation.backend;
  json["ranks"] = validation.ranks;
  json["baseline"] = validation.baseline;
  json["executor"] = validation.executor;
  json["rows"] = json_of(rows_of(validation));
  json["hardware"] = validation.hardware;
  json["compute"] = validation.operators ? "kernels" : "timers";
  json["links"] = {{"figures", validation.links}, {"samples", json_of(samples_of(validation))}};
  json["advice"] = measure::link_advice(validation);
  json["warmup"] = validation.warmup;
  json["repeats"] = validation.repeats;
  json["clock_error_s"] = exact(validation.clock_error);
  json["complete"] = validation.complete;
  return json;
}

Table rows_of(const std::vector<measure::LiveFile>& files) {
  using enum Kind;
  Table rows{columns(page_column("run"), data_column("scenario"), data_column("backend"),
                     data_column("ranks"), table_column("strategy", "strategy"),
                     table_column("predicted", "predicted_s", kSeconds),
                     table_column("measured\nmedian", "measured_median_s", kSeconds),
                     table_column("measured\np95", "measured_p95_s", kSeconds, 1),
                     table_column("error", "error_percent", kPercent),
                     table_column("values", "values_match", kFlag, 0, Column::kNoCsv))};
  for (const auto& file : files) {
    for (const auto& row : file.rows) {
      const bool first = &row == file.rows.data();
      const bool rule = first && !rows.lines.empty();
      rows.add(first ? file.scenario : "", file.scenario, file.backend, file.ranks, row.strategy,
               row.predicted, row.median, row.p95, row.error_percent(),
               match_cell(row.values_match))
          .rule_before = rule;
    }
  }
  return rows;
}

std::optional<measure::ErrorSummary> errors_of(const std::vector<measure::LiveFile>& files) {
  std::vector<double> errors;
  for (const auto& file : files) {
    for (const auto& row : file.rows) errors.push_back(row.error_percent());
  }
  return measure::summary_of(errors);
}

Page page_of(const std::vector<measure::LiveFile>& files) {
  Page page{"Predicted, then measured", "", {}};
  page.add(rows_of(files));
  if (const auto errors = errors_of(files)) {
    page.add(plural(errors->rows, "row") + ": median error " + share_text(errors->median) +
             ", 90th percentile " + share_text(errors->p90) + ", worst " +
             share_text(errors->worst) + ".");
  }
  Items where{"Measured:", {}};
  for (const auto& file : files) {
    const std::string line = file.scenario + ": " + file.cluster + ", " + file.hardware;
    if (std::find(where.items.begin(), where.items.end(), line) == where.items.end()) {
      where.items.push_back(line);
    }
  }
  page.add(std::move(where));
  return page;
}

Json json_of(const std::vector<measure::LiveFile>& files) {
  Json json{{"rows", json_of(rows_of(files))}};
  const auto errors = errors_of(files);
  json["median_error_percent"] = errors ? exact(errors->median) : Json();
  json["p90_error_percent"] = errors ? exact(errors->p90) : Json();
  json["worst_error_percent"] = errors ? exact(errors->worst) : Json();
  return json;
}

}  // namespace

std::string links_in_words(const Cluster& cluster) {
  std::vector<std::string> words;
  for (const auto& tier : cluster.tiers) words.push_back(tier_words(tier));
  words.push_back(plain_number(cluster.collective_overhead / kMicrosecond) + " us a collective");
  if (cluster.device.memory > 0) {
    words.push_back("encoding at " + plain_number(cluster.device.memory / 1e9) + " GB/s");
  }
  return join_and(words);
}

Answer answer_of(const measure::Validation& validation) {
  return make_answer("validate", validation.scenario, validation, page_of, rows_of, json_of, {},
                     figures_of);
}

Answer links_answer(const measure::Validation& validation, const Json& cluster) {
  return {"calibrate", "", [&] { return links_page(validation); },
          [&] { return samples_of(validation); },
          [&] {
            return Json{{"cluster", cluster}, {"samples", json_of(samples_of(validation))}};
          }};
}

Answer answer_of(const std::vector<measure::LiveFile>& files) {
  return make_answer("fidelity", "", files, page_of, rows_of, json_of, {}, figures_of);
}

namespace {

using Errors = std::optional<measure::ErrorSummary>;
using Intervals = std::optional<measure::IntervalSummary>;

template <typename Summary>
Cell figure(const std::optional<Summary>& summary, double Summary::*member) {
  return or_null(summary ? Cell((*summary).*member) : Cell());
}

Cell width_cell(const Intervals& intervals) {
  const Cell width = figure(intervals, &measure::IntervalSummary::width);
  return intervals ? show_as(width, "+" + share_text(intervals->width)) : width;
}

// Returns the mean logarithm of the errors of networks without measurements of their own.
Cell log_cell(const measure::FidelityTable& table, const Errors& errors) {
  if (!table.by_prior) return or_null(Cell());
  return show_as(figure(errors, &measure::ErrorSummary::mean_log), plain_number(errors->mean_log));
}

using Tables = std::vector<measure::FidelityTable>;
using TableField = Field<measure::FidelityTable>;

// Returns fields of the rows that values were fitted to.
std::vector<TableField> fitted_fields() {
  using enum Kind;
  const auto fitted = [](auto of) {
    return [of](const measure::FidelityTable& table) {
      return figure(measure::summary_of(table.calibrated), of);
    };
  };
  return {{table_column("calibrated\nrows", "calibrated_rows", kInteger, 5),
           [](const measure::FidelityTable& table) { return table.calibrated.size(); }},
          {page_column("median\nerror", kShare, 5), fitted(&measure::ErrorSummary::median)},
          {page_column("worst", kShare, 5), fitted(&measure::ErrorSummary::worst)}};
}

// Returns fields of the other rows, which are predicted.
std::vector<TableField> predicted_fields() {
  using enum Kind;
  const auto predicted = [](auto of) {
    return [of](const measure::FidelityTable& table) {
      return figure(measure::summary_of(table.predicted), of);
    };
  };
  return {{table_column("predicted\nrows", "predicted_rows", kInteger),
           [](const measure::FidelityTable& table) { return table.predicted.size(); }},
          {table_column("median\nerror", "median_error_percent", kShare),
           predicted(&measure::ErrorSummary::median)},
          {table_column("90th\npercentile", "p90_error_percent", kShare, 2),
           predicted(&measure::ErrorSummary::p90)},
          {table_column("worst", "worst_error_percent", kShare),
           predicted(&measure::ErrorSummary::worst)},
          {table_column("in 80 %\ninterval", "inside_interval_percent", kShare, 3),
           [](const measure::FidelityTable& table) {
             return figure(measure::interval_summary(table.intervals),
                           &measure::IntervalSummary::held);
           }},
          {table_column("median\nwidth", "median_interval_percent", kShare, 4),
           [](const measure::FidelityTable& table) {
             return width_cell(measure::interval_summary(table.intervals));
           }}};
}

// Returns fields of the range. `logs`: there are tables by prior, which have mean log errors.
std::vector<TableField> range_fields(bool logs) {
  using enum Kind;
  return {{logs ? table_column("mean\n|log|", "mean_log_error", kShare, 6)
                : data_column("mean_log_error", Column::kJson),
           [](const measure::FidelityTable& table) {
             return log_cell(table, measure::summary_of(table.predicted));
           }},
          {table_column("in\nrange", "in_range", kFlag, 1),
           [](const measure::FidelityTable& table) { return table.out_of_range.empty(); }},
          {data_column("out_of_range", Column::kJson),
           [](const measure::FidelityTable& table) {
             return table.out_of_range.empty() ? Cell() : Cell(table.out_of_range);
           }},
          {data_column("calibrated_median_error_percent", Column::kJson),
           [](const measure::FidelityTable& table) {
             const Errors fitted = measure::summary_of(table.calibrated);
             return fitted ? figure(fitted, &measure::ErrorSummary::median) : Cell();
           }}};
}

// Returns a row per table. Only the first row of a set shows its name, with a rule above it.
Table rows_of(const Tables& tables) {
  const std::vector<TableField> names{
      {table_column("set", "set"), &measure::FidelityTable::set},
      {table_column("table", "name"), &measure::FidelityTable::name}};
  const bool logs = std::ranges::any_of(tables, &measure::FidelityTable::by_prior);
  Table rows = table_of(fields<measure::FidelityTable>(names, fitted_fields(), predicted_fields(),
                                                       range_fields(logs)),
                        tables);
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const bool new_set = i == 0 || tables[i - 1].set != tables[i].set;
    rows.lines[i].rule_before = new_set && i > 0;
    if (!new_set) rows.lines[i].cells.front().text = "";
  }
  return rows;
}

std::size_t in_range(const std::vector<measure::FidelityTable>& tables) {
  std::size_t count = 0;
  for (const auto& table : tables) {
    if (table.out_of_range.empty() && !table.predicted.empty() && !table.by_prior) ++count;
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

// Summarises all predicted rows with an interval, in range or not: an interval must show how far
// off a prediction may be, above all out of range.
std::optional<measure::IntervalSummary> all_intervals(
    const std::vector<measure::FidelityTable>& tables) {
  std::vector<measure::IntervalRow> rows;
  for (const auto& table : tables) {
    if (table.by_prior) continue;
    rows.insert(rows.end(), table.intervals.begin(), table.intervals.end());
  }
  return measure::interval_summary(rows);
}

std::string interval_sentence(const measure::IntervalSummary& intervals) {
  return "Of the rows whose forecast has an 80 % interval, in range or not, " +
         share_text(intervals.held) + " lie inside it; in the median its upper end lies " +
         share_text(intervals.width) + " above the forecast.";
}

Page page_of(const std::vector<measure::FidelityTable>& tables) {
  Page page{
      "Fidelity",
      "Prediction errors against published measurements and, in the set live, against runs on "
      "our own machine.",
      {}};
  page.add(
      "Calibrated rows were used to fit the parameters of their table; their errors show the "
      "quality of the fit. Predicted rows were not, or were left out in turn and predicted from "
      "the rest: their errors are the ones to trust.");
  if (!tables.empty()) page.add(rows_of(tables));
  page.add(overall_sentence(tables));
  if (const auto intervals = all_intervals(tables)) {
    page.add(interval_sentence(*intervals));
  }
  Items out{"Out of range, kept out of the overall figure:", {}};
  for (const auto& table : tables) {
    if (!table.out_of_range.empty()) out.items.push_back(table.name + ": " + table.out_of_range);
  }
  page.add(std::move(out));
  return page;
}

Json json_of(const std::vector<measure::FidelityTable>& tables) {
  const Errors all = measure::overall(tables);
  const Intervals intervals = all_intervals(tables);
  const Json whole{
      {"tables", in_range(tables)},
      {"predicted_rows", all ? all->rows : 0},
      {"median_error_percent", figure(all, &measure::ErrorSummary::median).value},
      {"p90_error_percent", figure(all, &measure::ErrorSummary::p90).value},
      {"worst_error_percent", figure(all, &measure::ErrorSummary::worst).value},
      {"inside_interval_percent", figure(intervals, &measure::IntervalSummary::held).value},
      {"median_interval_percent", figure(intervals, &measure::IntervalSummary::width).value}};
  return Json{{"tables", json_of(rows_of(tables))}, {"overall", whole}};
}

}  // namespace

Answer answer_of(const std::vector<measure::FidelityTable>& tables) {
  return make_answer("fidelity", "", tables, page_of, rows_of, json_of, {}, figures_of);
}

}  // namespace syncline::reports
