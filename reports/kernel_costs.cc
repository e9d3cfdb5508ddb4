#include "reports/kernel_costs.h"

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

}  // namespace

Answer answer_of(const calibrate::KernelCosts& costs) {
  return {"calibrate", "", [&] { return page_of(costs); }, [&] { return csv_of(costs); },
          [&] { return json_of(costs); }};
}

}  // namespace syncline::reports
