#include "reports/validation_report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/scenario/scenario.h"
#include "core/statistics.h"
#include "reports/fields.h"
#include "reports/figures.h"
#include "reports/format.h"
#include "reports/page.h"

namespace syncline::reports {
namespace {

std::string tier_words(const Tier& tier) {
  return one_line(tier.name) + " " + plain_number(tier.latency / kMicrosecond) + " us and " +
         plain_number(tier.bandwidth / kGigabitPerSecond) + " Gbit/s";
}

std::string verdict_of(const measure::ValidatedRow& row) {
  if (!row.values_match) return "not checked";
  return *row.values_match ? "equal" : "WRONG";
}

Grid rows_grid(const measure::Validation& validation) {
  Grid grid;
  bool published = false;
  for (const auto& row : validation.rows) published = published || row.published_speedup;
  grid.columns = {{"strategy", false},
                  {"predicted"},
                  {"80 %\ninterval", true, 3},
                  {"measured\nmedian"},
                  {"measured\np95", true, 4},
                  {"error"},
                  {"speedup,\nmeasured", true, 1}};
  if (published) grid.columns.push_back({"speedup,\npublished", true, 2});
  grid.columns.push_back({"sent\na step", true, 5});
  grid.columns.push_back({"values", false});
  for (const auto& row : validation.rows) {
    const auto speedup = measure::measured_speedup(validation, row);
    std::vector<std::string> cells = {one_line(row.strategy),
                                      seconds_text(row.predicted),
                                      seconds_range(row.interval.low, row.interval.high),
                                      seconds_text(row.median),
                                      seconds_text(row.p95),
                                      percent_text(row.error() * 100),
                                      speedup ? speedup_text(*speedup) : ""};
    if (published) {
      cells.push_back(row.published_speedup ? speedup_text(*row.published_speedup) : "");
    }
    cells.push_back(row.bytes_sent ? bytes_text(*row.bytes_sent) : "not counted");
    cells.push_back(verdict_of(row));
    grid.lines.push_back({std::move(cells)});
  }
  return grid;
}

Grid kinds_grid(const measure::Validation& validation) {
  Grid grid;
  grid.columns = {{"strategy", false}, {"operations", false}, {"a step"},
                  {"predicted"},       {"measured"},          {"error"}};
  for (const auto& row : validation.rows) {
    bool first = true;
    for (const auto& kind : row.kinds) {
      if (kind.predicted == 0 && kind.measured < 1e-6) continue;
      const double error = kind.measured > 0 ? kind.predicted / kind.measured - 1 : 0;
      grid.lines.push_back(
          {{first ? one_line(row.strategy) : "", kind.kind, count_text(kind.operations),
            seconds_text(kind.predicted), seconds_text(kind.measured), percent_text(error * 100)},
           first && !grid.lines.empty()});
      first = false;
    }
  }
  return grid;
}

Grid samples_grid(const measure::Validation& validation) {
  Grid grid;
  grid.columns = {{"what", false}, {"payload"}, {"measured"}, {"fitted"}, {"error"}};
  for (const auto& s : validation.samples) {
    grid.lines.push_back(
        {{s.what, bytes_text(static_cast<double>(s.bytes)), seconds_text(s.measured),
          seconds_text(s.fitted), percent_text((s.fitted / s.measured - 1) * 100)}});
  }
  return grid;
}

std::string errors_sentence(const measure::Validation& validation) {
  std::vector<double> errors;
  for (const auto& row : validation.rows) errors.push_back(std::abs(row.error()) * 100);
  if (errors.empty()) return "Nothing was measured.";
  const auto held = std::count_if(validation.rows.begin(), validation.rows.end(),
                                  [](const measure::ValidatedRow& row) { return row.held(); });
  return "Predicted by the " + validation.executor +
         " executor before it was measured: " + plural(errors.size(), "row") + ", median error " +
         share_text(median(errors)) + ", worst " + share_text(percentile(errors, 1)) +
         "; the 80 % intervals hold " + std::to_string(held) + " of the medians.";
}

std::string values_sentence(const measure::Validation& validation) {
  std::vector<std::string> wrong;
  std::size_t checked = 0;
  for (const auto& row : validation.rows) {
    checked += row.values_match.has_value() ? 1 : 0;
    if (row.values_match && !*row.values_match) wrong.push_back(quoted_name(row.strategy));
  }
  if (checked == 0) return "The exchanged values were not checked.";
  if (wrong.empty()) return "Every exchanged value equals the host executor's, on every rank.";
  return "WRONG VALUES: " + join_and(wrong) + " did not end with the host executor's values.";
}

Page page_of(const measure::Validation& validation) {
  Page page;
  page.title = validation.scenario;
  page.about = validation.workload + " on " +
               plural(static_cast<std::size_t>(validation.ranks), "rank") + ", " +
               validation.cluster;
  page.blocks.push_back(rows_grid(validation));
  page.blocks.push_back(errors_sentence(validation));
  page.blocks.push_back(values_sentence(validation));
  for (const auto& sentence : measure::link_advice(validation)) page.blocks.push_back(sentence);
  if (!validation.complete) {
    page.blocks.push_back(std::string("Interrupted: the rows so far."));
  }
  page.blocks.push_back(
      std::string("By kind of operation, a step (those of collectives include waiting for the "
                  "other ranks):"));
  page.blocks.push_back(kinds_grid(validation));
  if (!validation.samples.empty()) {
    page.blocks.push_back(
        "Links, calibrated live from the following before any step was "
        "predicted: " +
        validation.links + ".");
    page.blocks.push_back(samples_grid(validation));
  } else {
    page.blocks.push_back("Links as the scenario has them: " + validation.links + ".");
  }
  page.blocks.push_back(
      Items{"Measured",
            {"with " + validation.hardware,
             plural(static_cast<std::size_t>(validation.repeats), "step") + " a row after " +
                 std::to_string(validation.warmup) + " to warm up",
             "clocks of the ranks agree to " + seconds_text(validation.clock_error),
             "computation is stood in for by timers of the plan's durations"}});
  return page;
}

Page links_page(const measure::Validation& validation) {
  Page page;
  page.title = "Links of " + one_line(validation.cluster);
  page.about = "measured by " + plural(static_cast<std::size_t>(validation.ranks), "rank");
  page.blocks.push_back(samples_grid(validation));
  page.blocks.push_back(std::string(
      "Ring all-reduces give each level its curve of a round's time over the bytes a "
      "rank sends in it, so they have no error. All-gathers and all-reduces across "
      "nodes were left out and are predicted by the curves. A device has one price of a launch "
      "and one of memory for encoding and decoding: it is fitted to the encodings, and "
      "short decodings are overpriced by the launch."));
  return page;
}

CsvTable csv_of(const measure::Validation& validation) {
  CsvTable table{{"strategy", "predicted_s", "predicted_low_s", "predicted_high_s",
                  "measured_median_s", "measured_p95_s", "error_percent", "values_match"},
                 {}};
  for (const auto& row : validation.rows) {
    table.lines.push_back({one_line(row.strategy), exact(row.predicted).dump(),
                           exact(row.interval.low).dump(), exact(row.interval.high).dump(),
                           exact(row.median).dump(), exact(row.p95).dump(),
                           exact(row.error() * 100).dump(),
                           row.values_match ? (*row.values_match ? "true" : "false") : ""});
  }
  return table;
}

CsvTable samples_csv(const measure::Validation& validation) {
  CsvTable table{{"what", "bytes", "measured_s", "fitted_s"}, {}};
  for (const auto& s : validation.samples) {
    table.lines.push_back(
        {s.what, std::to_string(s.bytes), exact(s.measured).dump(), exact(s.fitted).dump()});
  }
  return table;
}

Json samples_json(const measure::Validation& validation) {
  Json list = Json::array();
  for (const auto& s : validation.samples) {
    list.push_back({{"what", s.what},
                    {"bytes", s.bytes},
                    {"measured_s", exact(s.measured)},
                    {"fitted_s", exact(s.fitted)}});
  }
  return list;
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
  json["rows"] = Json::array();
  for (const auto& row : validation.rows) {
    Json line = {{"strategy", row.strategy},
                 {"predicted_s", exact(row.predicted)},
                 {"predicted_low_s", exact(row.interval.low)},
                 {"predicted_high_s", exact(row.interval.high)},
                 {"measured_median_s", exact(row.median)},
                 {"measured_p95_s", exact(row.p95)},
                 {"error_percent", exact(row.error() * 100)},
                 {"values_match", row.values_match ? Json(*row.values_match) : Json()},
                 {"bytes_sent", row.bytes_sent ? exact(*row.bytes_sent) : Json()}};
    if (const auto speedup = measure::measured_speedup(validation, row)) {
      line["speedup"] = exact(*speedup);
    }
    if (row.published_speedup) line["published_speedup"] = exact(*row.published_speedup);
    for (const Seconds step : row.steps) line["steps_s"].push_back(exact(step));
    for (const auto& kind : row.kinds) {
      line["kinds"].push_back({{"kind", kind.kind},
                               {"operations", kind.operations},
                               {"predicted_s", exact(kind.predicted)},
                               {"measured_s", exact(kind.measured)}});
    }
    json["rows"].push_back(std::move(line));
  }
  json["hardware"] = validation.hardware;
  json["links"] = {{"figures", validation.links}, {"samples", samples_json(validation)}};
  json["advice"] = measure::link_advice(validation);
  json["warmup"] = validation.warmup;
  json["repeats"] = validation.repeats;
  json["clock_error_s"] = exact(validation.clock_error);
  json["complete"] = validation.complete;
  return json;
}

std::string in_words(const std::optional<bool>& match) {
  if (!match) return "not checked";
  return *match ? "equal" : "WRONG";
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
  Grid grid{{{"run", false},
             {"strategy", false},
             {"predicted"},
             {"measured\nmedian"},
             {"measured\np95", true, 1},
             {"error"},
             {"values", false}},
            {}};
  for (const auto& file : files) {
    bool first = true;
    for (const auto& row : file.rows) {
      grid.lines.push_back(
          {{first ? one_line(file.scenario) : "", one_line(row.strategy),
            seconds_text(row.predicted), seconds_text(row.median), seconds_text(row.p95),
            percent_text(row.error_percent()), in_words(row.values_match)},
           first && !grid.lines.empty()});
      first = false;
    }
  }
  page.blocks.emplace_back(std::move(grid));
  if (const auto errors = errors_of(files)) {
    page.blocks.emplace_back(plural(errors->rows, "row") + ": median error " +
                             share_text(errors->median) + ", 90th percentile " +
                             share_text(errors->p90) + ", worst " + share_text(errors->worst) +
                             ".");
  }
  Items where{"Measured:", {}};
  for (const auto& file : files) {
    const std::string line = file.scenario + ": " + file.cluster + ", " + file.hardware;
    if (std::find(where.items.begin(), where.items.end(), line) == where.items.end()) {
      where.items.push_back(line);
    }
  }
  page.blocks.emplace_back(std::move(where));
  return page;
}

Json json_of(const std::vector<measure::LiveFile>& files) {
  Json json = {{"rows", Json::array()}};
  for (const auto& file : files) {
    for (const auto& row : file.rows) {
      json["rows"].push_back(
          {{"scenario", file.scenario},
           {"backend", file.backend},
           {"ranks", file.ranks},
           {"strategy", row.strategy},
           {"predicted_s", exact(row.predicted)},
           {"measured_median_s", exact(row.median)},
           {"measured_p95_s", exact(row.p95)},
           {"error_percent", exact(row.error_percent())},
           {"values_match", row.values_match ? Json(*row.values_match) : Json()}});
    }
  }
  const auto errors = errors_of(files);
  json["median_error_percent"] = errors ? exact(errors->median) : Json();
  json["p90_error_percent"] = errors ? exact(errors->p90) : Json();
  json["worst_error_percent"] = errors ? exact(errors->worst) : Json();
  return json;
}

CsvTable csv_of(const std::vector<measure::LiveFile>& files) {
  CsvTable table{{"scenario", "backend", "ranks", "strategy", "predicted_s", "measured_median_s",
                  "measured_p95_s", "error_percent"},
                 {}};
  for (const auto& file : files) {
    for (const auto& row : file.rows) {
      table.lines.push_back({file.scenario, file.backend, std::to_string(file.ranks), row.strategy,
                             exact(row.predicted).dump(), exact(row.median).dump(),
                             exact(row.p95).dump(), exact(row.error_percent()).dump()});
    }
  }
  return table;
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
  return {"validate",
          validation.scenario,
          [&] { return page_of(validation); },
          [&] { return csv_of(validation); },
          [&] { return json_of(validation); },
          {},
          [&] { return figures_of(validation); }};
}

Answer links_answer(const measure::Validation& validation, const Json& cluster) {
  return {"calibrate", "", [&] { return links_page(validation); },
          [&] { return samples_csv(validation); },
          [&] {
            return Json{{"cluster", cluster}, {"samples", samples_json(validation)}};
          }};
}

Answer answer_of(const std::vector<measure::LiveFile>& files) {
  return {"fidelity",
          "",
          [&] { return page_of(files); },
          [&] { return csv_of(files); },
          [&] { return json_of(files); },
          {},
          [&] { return figures_of(files); }};
}

}  // namespace syncline::reports
