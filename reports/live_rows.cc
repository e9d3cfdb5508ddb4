#include "reports/live_rows.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "reports/fields.h"
#include "reports/figures.h"
#include "reports/format.h"

namespace syncline::reports {
namespace {

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
