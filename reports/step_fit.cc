#include "reports/step_fit.h"

#include <nlohmann/json.hpp>

#include "reports/fields.h"
#include "reports/format.h"

namespace syncline::reports {
namespace {

using calibrate::StepFit;
using calibrate::StepRow;

double percent_off(const StepRow& row, Seconds predicted) {
  return 100 * (predicted / row.measured - 1);
}

Grid rows_grid(const StepFit& fit) {
  Grid grid{
      {{"row", false}, {"measured"}, {"before"}, {"error"}, {"after"}, {"error"}, {"use", false}},
      {}};
  for (const auto& row : fit.rows) {
    grid.lines.push_back(
        {{one_line(measure::name_of(row.key)), seconds_text(row.measured), seconds_text(row.before),
          percent_text(percent_off(row, row.before)), seconds_text(row.after),
          percent_text(percent_off(row, row.after)), row.fitted ? "fitted" : "predicted"}});
  }
  return grid;
}

Grid values_grid(const StepFit& fit) {
  Grid grid{{{"of cluster.device", false}, {"before"}, {"fitted"}, {"80 % interval"}}, {}};
  // Below a nanosecond or a tenth of a per cent nothing is left to read.
  const auto shown = [](double value) { return plain_number(value < 1e-3 ? 0 : value); };
  for (const auto& figure : fit.figures) {
    grid.lines.push_back({{figure.key, shown(figure.before), shown(figure.value),
                           shown(figure.low) + " to " + shown(figure.high)}});
  }
  return grid;
}

Page page_of(const StepFit& fit) {
  Page page{"Steps of " + one_line(fit.scenario),
            "What computation and exchanges cost each other on this device, and what each step "
            "costs besides.",
            {}};
  page.blocks.emplace_back(rows_grid(fit));
  page.blocks.emplace_back(values_grid(fit));
  if (!fit.notes.empty()) page.blocks.emplace_back(Items{"To know", fit.notes});
  return page;
}

Json json_of(const StepFit& fit) {
  Json json = {{"rows", Json::array()}, {"values", Json::array()}, {"notes", fit.notes}};
  for (const auto& row : fit.rows) {
    json["rows"].push_back({{"row", measure::name_of(row.key)},
                            {"measured_s", exact(row.measured)},
                            {"before_s", exact(row.before)},
                            {"after_s", exact(row.after)},
                            {"before_error_percent", exact(percent_off(row, row.before))},
                            {"after_error_percent", exact(percent_off(row, row.after))},
                            {"fitted", row.fitted}});
  }
  for (const auto& figure : fit.figures) {
    json["values"].push_back({{"key", figure.key},
                              {"before", exact(figure.before)},
                              {"value", exact(figure.value)},
                              {"low", exact(figure.low)},
                              {"high", exact(figure.high)},
                              {"told", figure.told}});
  }
  return json;
}

CsvTable csv_of(const StepFit& fit) {
  CsvTable table{{"row", "measured_s", "before_s", "after_s", "fitted"}, {}};
  for (const auto& row : fit.rows) {
    table.lines.push_back({measure::name_of(row.key), exact(row.measured).dump(),
                           exact(row.before).dump(), exact(row.after).dump(),
                           row.fitted ? "true" : "false"});
  }
  return table;
}

}  // namespace

Answer answer_of(const calibrate::StepFit& fit) {
  return {"calibrate", fit.scenario, [&] { return page_of(fit); }, [&] { return csv_of(fit); },
          [&] { return json_of(fit); }};
}

}  // namespace syncline::reports
