#include "reports/calibration.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "catalogue/hardware/device.h"
#include "core/base/statistics.h"
#include "formats/input/cost_model_json.h"
#include "reports/format.h"
#include "reports/run_report.h"
#include "reports/table.h"
#include "reports/text_plot.h"
#include "reports/verdict.h"
#include "studies/rows/uncertainty.h"
#include "studies/warnings/warnings.h"

namespace syncline::reports {
namespace {

std::string heading(const calibrate::ComparedTable& table) {
  return table_test(table) + ", " + std::to_string(table.nodes) + " x " +
         std::to_string(table.gpus_per_node) + " GPUs, " + table.file;
}

std::string share(double value) { return share_text(value * 100); }

// Returns the upper end of the 80 % interval / prediction; the lower end is prediction / factor.
double high_factor(const calibrate::ComparedRow& row) {
  return std::exp(measure::kHeldDeviations * row.spread);
}

// Makes a table of measured sizes. `answer`: the page's heading of the prediction.
Table sizes(const char* answer) {
  using enum Kind;
  return {columns(
      data_column("file", Column::kCsv), data_column("test", Column::kCsv),
      data_column("nodes", Column::kCsv), data_column("gpus_per_node", Column::kCsv),
      data_column("use", Column::kCsv), table_column("size", "bytes", kBytes),
      table_column("measured", "measured_s", kSeconds),
      table_column(answer, "predicted_s", kSeconds), data_column("low_s"), data_column("high_s"),
      table_column("error", "error_percent", kPercent, 0, Column::kNoCsv),
      page_column("80 %\ninterval", kShare), data_column("bus_bytes_per_s", Column::kJson),
      table_column("", "in_range", kFlag))};
}

void add_sizes(Table& sizes, const calibrate::ComparedTable& table, const char* use) {
  for (const auto& row : table.rows) {
    const double factor = high_factor(row);
    sizes.add(table.file, table_test(table), table.nodes, table.gpus_per_node, use, row.bytes,
              Json(row.measured), Json(row.predicted), Json(row.predicted / factor),
              Json(row.predicted * factor), Json((row.predicted / row.measured - 1) * 100),
              "+-" + share(factor - 1),
              Json(static_cast<double>(row.bytes) * bus_share(table) / row.measured),
              show_as(row.in_range, row.in_range ? "" : "out of range"));
  }
}

Table sizes_of(const calibrate::ComparedTable& table, const char* answer) {
  Table rows = sizes(answer);
  add_sizes(rows, table, "");
  return rows;
}

Table sizes_of(const calibrate::LogCalibration& calibration) {
  Table rows = sizes("");
  for (const auto& table : calibration.fitted) add_sizes(rows, table, "calibrated");
  for (const auto& table : calibration.against) add_sizes(rows, table, "predicted");
  return rows;
}

Table tables() {
  using enum Kind;
  return {columns(
      page_column("table"), data_column("file"), data_column("clean"), data_column("outlier_bytes"),
      data_column("test"), table_column("nodes", "nodes", kInteger),
      table_column("GPUs\nper node", "gpus_per_node", kInteger), page_column("rows", kCount, 4),
      page_column("use", kText, 1), data_column("model"),
      table_column("median\nerror", "median_error_percent", kShare),
      table_column("90th\npercentile", "p90_error_percent", kShare, 3),
      table_column("worst", "worst_error_percent", kShare), data_column("rows"),
      table_column("left out,\nmean", "left_out_percent", kShare, 2),
      page_column("cost\nmodel", kText, 5))};
}

void add_table(Table& tables, const calibrate::ComparedTable& table, const char* use) {
  const measure::ErrorSummary errors = calibrate::errors_of(table);
  const Cell left_out = table.left_out < 0 ? show_as({}, "-") : Cell(Json(table.left_out * 100));
  tables.add(table_test(table) + ", " + table.file, table.file, table.clean, Json(table.outliers),
             table_test(table), table.nodes, table.gpus_per_node, table.rows.size(), use,
             table.form, Json(errors.median * 100), Json(errors.p90 * 100),
             Json(errors.worst * 100), json_of(sizes_of(table, "")), left_out, table.form);
}

Table tables_of(const std::vector<calibrate::ComparedTable>& list, const char* use) {
  Table rows = tables();
  for (const auto& table : list) add_table(rows, table, use);
  return rows;
}

Table summary_of(const calibrate::LogCalibration& calibration) {
  Table rows = tables_of(calibration.fitted, "calibrated");
  for (const auto& table : calibration.against) add_table(rows, table, "predicted");
  return rows;
}

std::vector<PlotSeries> series_of(const calibrate::LogCalibration& calibration) {
  std::vector<PlotSeries> list;
  for (const auto* tables : {&calibration.fitted, &calibration.against}) {
    for (const auto& table : *tables) {
      PlotSeries& one = list.emplace_back();
      one.name = heading(table);
      for (const auto& row : table.rows) {
        one.points.emplace_back(static_cast<double>(row.bytes), row.measured);
        one.curve.emplace_back(static_cast<double>(row.bytes), row.predicted);
      }
    }
  }
  return list;
}

// Share of the line rate from which its unit is doubted: a tree of two nodes shows up to 2.
constexpr double kMaxLineShare = 2.5;

// Adds payloads that are slower than a smaller one, with the usual cause.
void add_slow_sizes(const calibrate::ComparedTable& table, std::vector<std::string>& facts) {
  const std::vector<calibrate::SlowSize> slow = calibrate::slow_sizes(table);
  if (slow.empty()) return;
  std::vector<std::string> sizes;
  bool spot = false;  // a single size, its neighbours as they should be
  for (const calibrate::SlowSize& size : slow) {
    sizes.push_back(bytes_text(size.bytes) + " (" + share(size.share) + " of the rate of " +
                    bytes_text(size.than) + ")");
  }
  const bool last = slow.back().bytes == table.rows.back().bytes;
  spot = slow.size() == 1 && !last;
  const std::string cause =
      spot   ? "A row was disturbed, or the protocol changes: repeat it"
      : last ? "From there on a cache, a buffer or a shared uplink is full"
             : "NCCL changes its algorithm or protocol there: repeat them with NCCL_ALGO=Ring and "
               "with NCCL_PROTO=Simple, and set the faster one; buckets of other sizes avoid them";
  facts.push_back(heading(table) + ": " + join_and(sizes) + " are slower than smaller sizes. " +
                  cause + ".");
}

// Returns usual causes of slow ports of the calibration's node, or of any node if it has none.
std::string causes_between_nodes(const calibrate::LogCalibration& calibration) {
  const hardware::KnownNode* node = hardware::find_node(calibration.node);
  return node == nullptr ? slow_network_causes(Fabric::kUnknown, 2)
                         : slow_network_causes(node->outside.fabric, node->outside.count);
}

constexpr const char* kCausesInside =
    "GPUs that do not reach each other (NCCL_DEBUG=INFO says SHM in place of P2P; NCCL_P2P_DISABLE "
    "is set, or ACS is on in PCIe bridges) and NVLink that is down (nvidia-smi nvlink -s)";

// Judges a table's rows against other networks: the largest size, and single ones.
std::string judgement(const std::vector<calibrate::BesideOthers>& rows, const std::string& causes) {
  constexpr double kPoor = 0.9, kFair = 0.6;
  const double largest = rows.back().slower_than;
  if (largest > kPoor) {
    constexpr double kFarWorse = 2;
    const auto worst = std::ranges::max_element(rows, {}, &calibrate::BesideOthers::longer);
    if (worst->longer < kFarWorse * rows.back().longer) return "poor. Look for " + causes;
    return "poor, and around " + bytes_text(worst->bytes) +
           " poorer than beyond, as where NCCL changes its protocol (repeat it with "
           "NCCL_PROTO=Simple, and with LL128). Look for " +
           causes;
  }
  std::vector<std::string> poor;
  for (const calibrate::BesideOthers& row : rows) {
    if (row.slower_than > kPoor) poor.push_back(bytes_text(row.bytes));
  }
  const std::string text = largest > kFair ? "fair" : "good";
  if (poor.empty()) return text;
  return text + " but for " + join_and(poor) +
         ", where NCCL_ALGO and NCCL_PROTO are worth trying, or sizes between";
}

// Adds each table's rows compared with those of other networks of such nodes.
void add_beside(const calibrate::LogCalibration& calibration, std::vector<std::string>& facts) {
  for (std::size_t t = 0; t < calibration.fitted.size(); ++t) {
    std::vector<std::string> sizes;
    std::vector<calibrate::BesideOthers> rows;
    for (const calibrate::BesideOthers& row : calibration.beside) {
      if (row.table != t) continue;
      rows.push_back(row);
      sizes.push_back(bytes_text(row.bytes) + " takes " + short_speedup_text(row.longer) +
                      " as long (slower than " + share(row.slower_than) + ")");
    }
    if (rows.empty()) continue;
    facts.push_back(heading(calibration.fitted[t]) + ": " +
                    judgement(rows, calibration.fitted[t].nodes > 1
                                        ? causes_between_nodes(calibration)
                                        : kCausesInside) +
                    ". Next to the median of networks of " + one_line(calibration.node) +
                    " and the like, " + join_and(sizes) + ".");
  }
}

// Returns a sentence that judges the share of the line rate. The yardsticks are the best rates
// between nodes in the logs of scenarios/measured/nccl-tests over the rated ones in their headers;
// kGood and kUsual are chosen from these.
std::string line_sentence(const calibrate::LogCalibration& calibration) {
  const calibrate::LineShare& line = *calibration.line;
  constexpr double kGood = 0.85;
  constexpr double kUsual = 0.6;
  const std::string verdict = line.share >= kMaxLineShare ? "more than such a line carries"
                              : line.share > 1
                                  ? "more than the line, as with two nodes a tree can have"
                              : line.share >= kGood  ? "good"
                              : line.share >= kUsual ? "usual"
                                                     : "poor";
  const std::string causes =
      line.share >= kUsual ? "" : " Look for " + causes_between_nodes(calibration) + ".";
  return "At its best a node sends " + plain_number(line.rate / kGigabytePerSecond) + " GB/s, " +
         share(line.share) + " of the line rate of " +
         plain_number(line.line / kGigabytePerSecond) + " GB/s: " + verdict +
         ". Published: 98 % on H100 nodes with InfiniBand, 94 % on 10 Gbit/s Ethernet, 92 % on "
         "GH200 Alps, 88 % on A100 with EFA; 74 % on Polaris with libfabric, 64 % on A100 ND v4, "
         "43 % on 2080 Ti with InfiniBand, 19 % on Polaris over TCP." +
         causes;
}

std::vector<std::string> line_suspicions(const calibrate::LogCalibration& calibration) {
  constexpr double kBits = 8;
  if (!calibration.line || calibration.line->share < kMaxLineShare) return {};
  const double gigabits = calibration.line->line / kGigabitPerSecond;
  return {std::string(measure::kDoubtful) + "--line-rate is read in Gbit/s, and " +
          share(calibration.line->share) + " of " + plain_number(gigabits) +
          " Gbit/s was measured: were GB/s meant (" + plain_number(gigabits * kBits) + " Gbit/s)?"};
}

// Returns true if a table between nodes has a size of 64 KiB or more.
bool shows_rate(const cost::MeasuredCostModel& model) {
  constexpr double kLarge = 65536;
  return std::ranges::any_of(model.tables, [](const cost::TableCostModel& table) {
    return table.nodes > 1 && table.max_bytes >= kLarge;
  });
}

std::vector<std::string> facts_of(const calibrate::LogCalibration& calibration) {
  std::vector<std::string> facts;
  facts.push_back("Mean error over the rows used: " + share(calibration.in_sample) +
                  (calibration.left_out < 0 ? std::string("; too few sizes to leave one out.")
                                            : "; with each size left out in turn: " +
                                                  share(calibration.left_out) + "."));
  if (calibration.cost_model.scale) {
    const cost::ScaleCostModel& scale = *calibration.cost_model.scale;
    facts.push_back("Between nodes, at all counts: " + plural(scale.steps.size(), "cost model") +
                    " of an algorithm and protocol, median error " + share(scale.in_sample) +
                    " over their own rows" +
                    (shows_rate(calibration.cost_model)
                         ? " of 64 KiB and more; a node sends " +
                               plain_number(scale.prior.bandwidth / kGigabytePerSecond) + " GB/s."
                         : std::string(", all too small for a rate.")));
  }
  if (calibration.line) facts.push_back(line_sentence(calibration));
  if (calibration.node.empty()) {
    const auto& kinds = calibration.kinds;
    facts.push_back(
        "To compare it with published networks, add --node " +
        (kinds.empty() ? std::string("and the kind of node") : join_and(kinds, " or ")) + ".");
  }
  add_beside(calibration, facts);
  for (const calibrate::ComparedTable& table : calibration.fitted) add_slow_sizes(table, facts);
  if (calibration.cost_model.tree) {
    const cost::TreeFactor& tree = *calibration.cost_model.tree;
    facts.push_back("A forced tree costs " + plain_number(tree.factor) +
                    " x bytes / bandwidth, found on another network: " + one_line(tree.source) +
                    ".");
  }
  if (calibration.device) {
    const calibrate::DeviceFit& device = *calibration.device;
    std::string fact = "The device reaches " + plain_number(device.flops / 1e12) + " TFLOP/s on " +
                       one_line(device.workload) + " (no other model's rate), from " +
                       one_line(device.source);
    if (device.launch) fact += "; a launch costs at most " + seconds_text(*device.launch);
    if (device.worst_place) {
      fact += "; shared out by FLOPs a gradient is ready within " + share(*device.worst_place) +
              " of the pass of when it was";
    }
    facts.push_back(fact + ".");
  }
  return facts;
}

std::string title() { return "Calibration from measured collectives"; }

// Adds each table as measured and as the cost model predicts it.
void add_tables(Page& page, const std::vector<calibrate::ComparedTable>& tables,
                const char* answer) {
  for (const auto& table : tables) {
    const bool fitted = std::string_view(answer) == "fitted";
    page.add((fitted ? "Fitted: " : "Predicted: ") + one_line(heading(table)) +
             (fitted ? " (" + table.form + ")" : ""));
    page.add(sizes_of(table, answer));
  }
}

Page page_of(const calibrate::LogCalibration& calibration) {
  Page page{title(), "", {}};
  std::string facts = join(facts_of(calibration), "\n");
  for (const auto& warning : calibration.warnings) facts += "\nwarning: " + one_line(warning);
  page.add(facts);
  page.add(summary_of(calibration));
  add_tables(page, calibration.fitted, "fitted");
  add_tables(page, calibration.against, "predicted");
  page.add(Listing{"text", text_plot(series_of(calibration)), true});
  return page;
}

Json json_of(const calibrate::LogCalibration& calibration) {
  Json json = {{"in_sample_percent", calibration.in_sample * 100},
               {"left_out_percent", nullptr},
               {"fitted", json_of(tables_of(calibration.fitted, ""))},
               {"against", json_of(tables_of(calibration.against, ""))},
               {"law", input::cost_model_json(calibration.cost_model)},
               {"facts", facts_of(calibration)},
               {"warnings", calibration.warnings}};
  if (calibration.left_out >= 0) json["left_out_percent"] = calibration.left_out * 100;
  return json;
}

}  // namespace

std::string table_test(const calibrate::ComparedTable& table) {
  constexpr const char* kForced[] = {"", " by a forced ring", " by a forced tree"};
  return table.test + kForced[static_cast<std::size_t>(table.forced)];
}

double bus_share(const calibrate::ComparedTable& table) {
  const double ranks = table.nodes * table.gpus_per_node;
  if (table.test == "all_reduce") return 2 * (ranks - 1) / ranks;
  const bool all = table.test == "all_gather" || table.test == "reduce_scatter" ||
                   table.test == "alltoall" || table.test == "all_to_all";
  return all ? (ranks - 1) / ranks : 1;
}

Answer answer_of(const calibrate::LogCalibration& calibration) {
  return make_answer("calibrate", "", calibration, page_of, sizes_of, json_of,
                     line_suspicions(calibration), figures_of);
}

namespace {

double error_percent(const calibrate::KernelCosts& costs, const calibrate::KernelTiming& timing) {
  return 100 * (costs.evaluated_seconds(timing) / timing.measured - 1);
}

Table kernels_of(const calibrate::KernelCosts& costs) {
  using enum Kind;
  Table kernels{columns(table_column("kernel", "name"), table_column("kind", "kind"),
                        table_column("measured", "measured_s", kSeconds),
                        table_column("predicted", "priced_s", kSeconds),
                        table_column("error", "error_percent", kPercent),
                        table_column("use", "fitted", kFlag))};
  for (const auto& timing : costs.timings) {
    kernels.add(timing.name, timing.kind, timing.measured, costs.evaluated_seconds(timing),
                error_percent(costs, timing),
                show_as(timing.fitted, timing.fitted ? "fitted" : ""));
  }
  return kernels;
}

Page page_of(const calibrate::KernelCosts& costs) {
  Page page{
      "Kernels on " + one_line(costs.gpu), "What the device of a cluster predicts for them.", {}};
  page.add("Device: memory_gbytes_per_s = " + copied_number(costs.memory / kGigabytePerSecond) +
           ", launch_us = " + copied_number(costs.launch / kMicrosecond) +
           ", kernel_gap_us = " + copied_number(costs.kernel_gap / kMicrosecond) + ".");
  page.add(kernels_of(costs));
  page.add(
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
  Table rows{columns(table_column("row", "row"), table_column("measured", "measured_s", kSeconds),
                     table_column("before", "before_s", kSeconds), page_column("error", kPercent),
                     table_column("after", "after_s", kSeconds),
                     data_column("before_error_percent", Column::kJson),
                     table_column("error", "after_error_percent", kPercent, 0, Column::kNoCsv),
                     table_column("use", "fitted", kFlag))};
  for (const auto& row : fit.rows) {
    const double before = percent_off(row, row.before);
    rows.add(measure::name_of(row.key), row.measured, row.before, before, row.after, before,
             percent_off(row, row.after), show_as(row.fitted, row.fitted ? "fitted" : "predicted"));
  }
  return rows;
}

Table values_of(const StepFit& fit) {
  using enum Kind;
  Table values{
      columns(table_column("of cluster.device", "key"), table_column("before", "before", kCount),
              table_column("fitted", "value", kCount), page_column("80 % interval", kCount),
              data_column("low"), data_column("high"), data_column("told"))};
  // Below a nanosecond or a tenth of a per cent no digit is left.
  const auto text = [](double value) { return plain_number(value < 1e-3 ? 0 : value); };
  for (const auto& figure : fit.figures) {
    values.add(figure.key, show_as(figure.before, text(figure.before)),
               show_as(figure.value, text(figure.value)),
               text(figure.low) + " to " + text(figure.high), figure.low, figure.high, figure.told);
  }
  return values;
}

// Returns "Predicted steps are off by 2.1 % in the median with the fit, and by 14 % without."; of
// the fitted steps if none is predicted.
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
  page.add(fit_sentence(fit));
  page.add(rows_of(fit));
  page.add(values_of(fit));
  page.add(Items{"To know", fit.notes});
  return page;
}

Json json_of(const StepFit& fit) {
  return {
      {"rows", json_of(rows_of(fit))}, {"values", json_of(values_of(fit))}, {"notes", fit.notes}};
}

}  // namespace

Answer answer_of(const calibrate::KernelCosts& costs) {
  return make_answer("calibrate", "", costs, page_of, kernels_of, json_of);
}

Answer answer_of(const calibrate::StepFit& fit) {
  return make_answer("calibrate", fit.scenario, fit, page_of, rows_of, json_of);
}

}  // namespace syncline::reports
