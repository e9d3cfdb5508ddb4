#include "reports/calibration.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/statistics.h"
#include "reports/format.h"
#include "reports/table.h"

namespace syncline::reports {
namespace {

double error_percent(const calibrate::KernelCosts& costs, const calibrate::KernelTiming& timing) {
  return 100 * (costs.evaluated(timing) / timing.measured - 1);
}

Table kernels_of(const calibrate::KernelCosts& costs) {
  using enum Kind;
  Table kernels{columns(both("kernel", "name"), both("kind", "kind"),
                        both("measured", "measured_s", kSeconds),
                        both("predicted", "priced_s", kSeconds),
                        both("error", "error_percent", kPercent), both("use", "fitted", kFlag))};
  for (const auto& timing : costs.timings) {
    kernels.add(timing.name, timing.kind, timing.measured, costs.evaluated(timing),
                error_percent(costs, timing),
                shown_as(timing.fitted, timing.fitted ? "fitted" : ""));
  }
  return kernels;
}

Page page_of(const calibrate::KernelCosts& costs) {
  Page page{
      "Kernels on " + one_line(costs.gpu), "What the device of a cluster predicts for them.", {}};
  page.blocks.emplace_back(
      "Device: memory_gbytes_per_s = " + copied_number(costs.memory / kGigabytePerSecond) +
      ", launch_us = " + copied_number(costs.launch / kMicrosecond) +
      ", kernel_gap_us = " + copied_number(costs.kernel_gap / kMicrosecond) + ".");
  page.blocks.emplace_back(grid_of(kernels_of(costs)));
  page.blocks.emplace_back(
      "Measured: " + one_line(costs.file) +
      ". One rate predicts all kernels: the harmonic mean over the kinds fitted. The rest is shown "
      "next to it: what fits into a cache, several kernels in one, and scattered access.");
  return page;
}

Json json_of(const calibrate::KernelCosts& costs) {
  return {{"gpu", costs.gpu},
          {"memory_gbytes_per_s", exact(costs.memory / kGigabytePerSecond)},
          {"launch_us", exact(costs.launch / kMicrosecond)},
          {"kernel_gap_us", exact(costs.kernel_gap / kMicrosecond)},
          {"kernels", json_of(kernels_of(costs))}};
}

using calibrate::StepFit;
using calibrate::StepRow;

double percent_off(const StepRow& row, Seconds predicted) {
  return 100 * (predicted / row.measured - 1);
}

Table rows_of(const StepFit& fit) {
  using enum Kind;
  Table rows{columns(both("row", "row"), both("measured", "measured_s", kSeconds),
                     both("before", "before_s", kSeconds), shown("error", kPercent),
                     both("after", "after_s", kSeconds),
                     kept("before_error_percent", Column::kJson),
                     both("error", "after_error_percent", kPercent, 0, Column::kNoCsv),
                     both("use", "fitted", kFlag))};
  for (const auto& row : fit.rows) {
    const double before = percent_off(row, row.before);
    rows.add(measure::name_of(row.key), row.measured, row.before, before, row.after, before,
             percent_off(row, row.after),
             shown_as(row.fitted, row.fitted ? "fitted" : "predicted"));
  }
  return rows;
}

Table values_of(const StepFit& fit) {
  using enum Kind;
  Table values{columns(both("of cluster.device", "key"), both("before", "before", kCount),
                       both("fitted", "value", kCount), shown("80 % interval", kCount), kept("low"),
                       kept("high"), kept("told"))};
  // Below a nanosecond or a tenth of a per cent nothing is left to read.
  const auto text = [](double value) { return plain_number(value < 1e-3 ? 0 : value); };
  for (const auto& figure : fit.figures) {
    values.add(figure.key, shown_as(figure.before, text(figure.before)),
               shown_as(figure.value, text(figure.value)),
               text(figure.low) + " to " + text(figure.high), figure.low, figure.high, figure.told);
  }
  return values;
}

// "Steps are off by 2.1 % in the median with the fit, and by 14 % without." Of predicted rows where
// there are some.
std::string fit_sentence(const StepFit& fit) {
  const bool predicted = std::ranges::any_of(fit.rows, [](const auto& row) { return !row.fitted; });
  std::vector<double> before, after;
  for (const auto& row : fit.rows) {
    if (predicted && row.fitted) continue;
    before.push_back(std::abs(percent_off(row, row.before)));
    after.push_back(std::abs(percent_off(row, row.after)));
  }
  if (after.empty()) return "No step was measured.";
  return std::string(predicted ? "Predicted steps" : "The fitted steps") + " are off by " +
         share_text(median(after)) + " in the median with the fit, and by " +
         share_text(median(before)) + " without.";
}

Page page_of(const StepFit& fit) {
  Page page{"Steps of " + one_line(fit.scenario),
            "How computation and collectives slow each other down on this device, and what each "
            "step costs besides.",
            {}};
  page.blocks.emplace_back(fit_sentence(fit));
  page.blocks.emplace_back(grid_of(rows_of(fit)));
  page.blocks.emplace_back(grid_of(values_of(fit)));
  if (!fit.notes.empty()) page.blocks.emplace_back(Items{"To know", fit.notes});
  return page;
}

Json json_of(const StepFit& fit) {
  return {
      {"rows", json_of(rows_of(fit))}, {"values", json_of(values_of(fit))}, {"notes", fit.notes}};
}

}  // namespace

Answer answer_of(const calibrate::KernelCosts& costs) {
  return {"calibrate", "", [&] { return page_of(costs); }, [&] { return kernels_of(costs); },
          [&] { return json_of(costs); }};
}

Answer answer_of(const calibrate::StepFit& fit) {
  return {"calibrate", fit.scenario, [&] { return page_of(fit); }, [&] { return rows_of(fit); },
          [&] { return json_of(fit); }};
}

}  // namespace syncline::reports
