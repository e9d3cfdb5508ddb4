#include "reports/calibration.h"

#include <nlohmann/json.hpp>

#include "reports/fields.h"
#include "reports/format.h"

namespace syncline::reports {
namespace {

double error_percent(const calibrate::KernelCosts& costs, const calibrate::KernelTiming& timing) {
  return 100 * (costs.priced(timing) / timing.measured - 1);
}

Page page_of(const calibrate::KernelCosts& costs) {
  Page page{
      "Kernels on " + one_line(costs.gpu), "What the device of a cluster prices them at.", {}};
  Grid grid{
      {{"kernel", false}, {"kind", false}, {"measured"}, {"priced"}, {"error"}, {"use", false}},
      {}};
  for (const auto& timing : costs.timings) {
    grid.lines.push_back(
        {{one_line(timing.name), one_line(timing.kind), seconds_text(timing.measured),
          seconds_text(costs.priced(timing)), percent_text(error_percent(costs, timing)),
          timing.fitted ? "fitted" : ""},
         false});
  }
  page.blocks.emplace_back(std::move(grid));
  page.blocks.emplace_back(
      "Device: memory_gbytes_per_s = " + copied_number(costs.memory / kGigabytePerSecond) +
      ", launch_us = " + copied_number(costs.launch / kMicrosecond) +
      ", kernel_gap_us = " + copied_number(costs.kernel_gap / kMicrosecond) + ".");
  page.blocks.emplace_back(
      "Measured: " + one_line(costs.file) +
      ". One rate prices all kernels: the harmonic mean over the kinds fitted. The rest is shown "
      "beside it: what fits into a cache, several kernels in one, and scattered access.");
  return page;
}

Json json_of(const calibrate::KernelCosts& costs) {
  Json json = {{"gpu", costs.gpu},
               {"memory_gbytes_per_s", exact(costs.memory / kGigabytePerSecond)},
               {"launch_us", exact(costs.launch / kMicrosecond)},
               {"kernel_gap_us", exact(costs.kernel_gap / kMicrosecond)},
               {"kernels", Json::array()}};
  for (const auto& timing : costs.timings) {
    json["kernels"].push_back({{"name", timing.name},
                               {"kind", timing.kind},
                               {"measured_s", exact(timing.measured)},
                               {"priced_s", exact(costs.priced(timing))},
                               {"error_percent", exact(error_percent(costs, timing))},
                               {"fitted", timing.fitted}});
  }
  return json;
}

CsvTable csv_of(const calibrate::KernelCosts& costs) {
  CsvTable table{{"name", "kind", "measured_s", "priced_s", "error_percent", "fitted"}, {}};
  for (const auto& timing : costs.timings) {
    table.lines.push_back({timing.name, timing.kind, exact(timing.measured).dump(),
                           exact(costs.priced(timing)).dump(),
                           exact(error_percent(costs, timing)).dump(),
                           timing.fitted ? "true" : "false"});
  }
  return table;
}

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

Answer answer_of(const calibrate::KernelCosts& costs) {
  return {"calibrate", "", [&] { return page_of(costs); }, [&] { return csv_of(costs); },
          [&] { return json_of(costs); }};
}

Answer answer_of(const calibrate::StepFit& fit) {
  return {"calibrate", fit.scenario, [&] { return page_of(fit); }, [&] { return csv_of(fit); },
          [&] { return json_of(fit); }};
}

}  // namespace syncline::reports
