#include "reports/calibration.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/hardware/device.h"
#include "core/input/scenario_json.h"
#include "core/measure/uncertainty.h"
#include "core/measure/warnings.h"
#include "reports/figures.h"
#include "reports/format.h"
#include "reports/table.h"
#include "reports/text_plot.h"
#include "reports/verdict.h"

namespace syncline::reports {
namespace {

std::string heading(const calibrate::ComparedTable& table) {
  return table_test(table) + ", " + std::to_string(table.nodes) + " x " +
         std::to_string(table.gpus_per_node) + " GPUs, " + table.file;
}

std::string share(double value) { return share_text(value * 100); }

// Upper end of the 80 % interval over the prediction; the lower end is as many times below it.
double high_factor(const calibrate::ComparedRow& row) {
  return std::exp(measure::kHeldDeviations * row.spread);
}

// Every size that was measured. `answer`: what the page calls the prediction.
Table sizes(const char* answer) {
  using enum Kind;
  return {columns(
      kept("file", Column::kCsv), kept("test", Column::kCsv), kept("nodes", Column::kCsv),
      kept("gpus_per_node", Column::kCsv), kept("use", Column::kCsv), both("size", "bytes", kBytes),
      both("measured", "measured_s", kSeconds), both(answer, "predicted_s", kSeconds),
      kept("low_s"), kept("high_s"), both("error", "error_percent", kPercent, 0, Column::kNoCsv),
      shown("80 %\ninterval", kShare), kept("bus_bytes_per_s", Column::kJson),
      both("", "in_range", kFlag))};
}

void add_sizes(Table& sizes, const calibrate::ComparedTable& table, const char* use) {
  for (const auto& row : table.rows) {
    const double factor = high_factor(row);
    sizes.add(table.file, table_test(table), table.nodes, table.gpus_per_node, use, row.bytes,
              Json(row.measured), Json(row.predicted), Json(row.predicted / factor),
              Json(row.predicted * factor), Json((row.predicted / row.measured - 1) * 100),
              "+-" + share(factor - 1),
              Json(static_cast<double>(row.bytes) * bus_share(table) / row.measured),
              shown_as(row.in_range, row.in_range ? "" : "out of range"));
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
  return {columns(shown("table"), kept("file"), kept("clean"), kept("outlier_bytes"), kept("test"),
                  both("nodes", "nodes", kInteger), both("GPUs\na node", "gpus_per_node", kInteger),
                  shown("rows", kCount, 4), shown("use", kText, 1), kept("model"),
                  both("median\nerror", "median_error_percent", kShare),
                  both("90th\npercentile", "p90_error_percent", kShare, 3),
                  both("worst", "worst_error_percent", kShare), kept("rows"),
                  both("left out,\nmean", "left_out_percent", kShare, 2),
                  shown("cost\nmodel", kText, 5))};
}

void add_table(Table& tables, const calibrate::ComparedTable& table, const char* use) {
  const measure::ErrorSummary errors = calibrate::errors_of(table);
  const Cell left_out = table.left_out < 0 ? shown_as({}, "-") : Cell(Json(table.left_out * 100));
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

// Twice the line is the most that a tree of two nodes shows.
constexpr double kMostOfLine = 2.5;

// A payload that is slower than a smaller one, and what that usually is.
void add_slow_sizes(const calibrate::ComparedTable& table, std::vector<std::string>& facts) {
  const std::vector<calibrate::SlowSize> slow = calibrate::slow_sizes(table);
  if (slow.empty()) return;
  std::vector<std::string> sizes;
  bool spot = false;  // a single size, its neighbours as they should be
  for (const calibrate::SlowSize& size : slow) {
    sizes.push_back(bytes_text(static_cast<double>(size.bytes)) + " (" + share(size.share) +
                    " of the rate of " + bytes_text(static_cast<double>(size.than)) + ")");
  }
  const bool last = slow.back().bytes == table.rows.back().bytes;
  spot = slow.size() == 1 && !last;
  const std::string cause =
      spot   ? "a disturbed row, or a change of protocol: repeat it"
      : last ? "from there on something else is full: a cache, a buffer, an uplink that is shared"
             : "NCCL changes its algorithm or protocol there: repeat them with NCCL_ALGO=Ring and "
               "with NCCL_PROTO=Simple, and set what is faster; buckets of other sizes avoid them";
  facts.push_back(heading(table) + ": slower than smaller sizes are " + join_and(sizes) + ": " +
                  cause + ".");
}

// What usually holds the ports of the calibration's nodes back; those of any where it has none.
std::string causes_between_nodes(const calibrate::LogCalibration& calibration) {
  const hardware::KnownNode* node = hardware::find_node(calibration.node);
  return node == nullptr ? slow_network_causes(Fabric::kUnknown, 2)
                         : slow_network_causes(node->outside.fabric, node->outside.count);
}

constexpr const char* kCausesInside =
    "GPUs that do not reach each other (NCCL_DEBUG=INFO says SHM in place of P2P; NCCL_P2P_DISABLE "
    "is set, or ACS is on in PCIe bridges) and NVLink that is down (nvidia-smi nvlink -s)";

// What a table's rows come to beside other networks: of the largest, and of single ones.
std::string judgement(const std::vector<calibrate::BesideOthers>& rows, const std::string& causes) {
  constexpr double kPoor = 0.9, kFair = 0.6;
  const double largest = rows.back().slower_than;
  if (largest > kPoor) {
    constexpr double kFarWorse = 2;
    const auto worst = std::ranges::max_element(rows, {}, &calibrate::BesideOthers::longer);
    if (worst->longer < kFarWorse * rows.back().longer) return "poor. Look for " + causes;
    return "poor, and around " + bytes_text(static_cast<double>(worst->bytes)) +
           " poorer than beyond, as where NCCL changes its protocol (repeat it with "
           "NCCL_PROTO=Simple, and with LL128). Look for " +
           causes;
  }
  std::vector<std::string> poor;
  for (const calibrate::BesideOthers& row : rows) {
    if (row.slower_than > kPoor) poor.push_back(bytes_text(static_cast<double>(row.bytes)));
  }
  const std::string text = largest > kFair ? "fair" : "good";
  if (poor.empty()) return text;
  return text + " but for " + join_and(poor) +
         ", where NCCL_ALGO and NCCL_PROTO are worth trying, or sizes between";
}

// A table's rows beside those of other networks of such nodes.
void add_beside(const calibrate::LogCalibration& calibration, std::vector<std::string>& facts) {
  for (std::size_t t = 0; t < calibration.fitted.size(); ++t) {
    std::vector<std::string> told;
    std::vector<calibrate::BesideOthers> rows;
    for (const calibrate::BesideOthers& row : calibration.beside) {
      if (row.table != t) continue;
      rows.push_back(row);
      told.push_back(bytes_text(static_cast<double>(row.bytes)) + " takes " +
                     short_speedup_text(row.longer) + " (slower than " + share(row.slower_than) +
                     ")");
    }
    if (rows.empty()) continue;
    facts.push_back(
        heading(calibration.fitted[t]) + ", beside networks of " + one_line(calibration.node) +
        " and the like, their median as 1: " + join_and(told) + ": " +
        judgement(rows, calibration.fitted[t].nodes > 1 ? causes_between_nodes(calibration)
                                                        : kCausesInside) +
        ".");
  }
}

// Whether a share of the line rate is good. The yardsticks are the best rates between nodes of the
// logs in scenarios/measured/nccl-tests over what their headers say the NICs are rated; what is
// good and usual, where those lie.
std::string line_sentence(const calibrate::LogCalibration& calibration) {
  const calibrate::LineShare& line = *calibration.line;
  constexpr double kGood = 0.85;
  constexpr double kUsual = 0.6;
  const std::string verdict = line.share >= kMostOfLine ? "more than such a line carries"
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
  if (!calibration.line || calibration.line->share < kMostOfLine) return {};
  const double gigabits = calibration.line->line / kGigabitPerSecond;
  return {std::string(measure::kDoubtful) + "--line-rate is read in Gbit/s, and " +
          share(calibration.line->share) + " of " + plain_number(gigabits) +
          " Gbit/s was measured: were GB/s meant (" + plain_number(gigabits * kBits) + " Gbit/s)?"};
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
                    " over their own rows of 64 KiB and more; a node sends " +
                    plain_number(scale.prior.bandwidth / kGigabytePerSecond) + " GB/s.");
  }
  if (calibration.line) facts.push_back(line_sentence(calibration));
  if (calibration.node.empty()) {
    const auto& kinds = calibration.kinds;
    facts.push_back(
        "How good that is, published networks tell: --node " +
        (kinds.empty() ? std::string("names the kind of node") : join_and(kinds, " or ")) + ".");
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

// Every table as it was measured and as the cost model has it.
void add_tables(Page& page, const std::vector<calibrate::ComparedTable>& tables,
                const char* answer) {
  for (const auto& table : tables) {
    const bool fitted = std::string_view(answer) == "fitted";
    page.blocks.push_back((fitted ? "Fitted: " : "Predicted: ") + one_line(heading(table)) +
                          (fitted ? " (" + table.form + ")" : ""));
    page.blocks.push_back(grid_of(sizes_of(table, answer)));
  }
}

Page page_of(const calibrate::LogCalibration& calibration) {
  Page page{title(), "", {}};
  std::string facts;
  for (const auto& fact : facts_of(calibration)) facts += (facts.empty() ? "" : "\n") + fact;
  for (const auto& warning : calibration.warnings) facts += "\nwarning: " + one_line(warning);
  page.blocks.push_back(facts);
  page.blocks.push_back(grid_of(summary_of(calibration)));
  add_tables(page, calibration.fitted, "fitted");
  add_tables(page, calibration.against, "predicted");
  page.blocks.push_back(Listing{"text", text_plot(series_of(calibration)), true});
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
  switch (table.forced) {
    case cost::ForcedAlgorithm::kRing:
      return table.test + " by a forced ring";
    case cost::ForcedAlgorithm::kTree:
      return table.test + " by a forced tree";
    case cost::ForcedAlgorithm::kNone:
      break;
  }
  return table.test;
}

double bus_share(const calibrate::ComparedTable& table) {
  const double ranks = table.nodes * table.gpus_per_node;
  if (table.test == "all_reduce") return 2 * (ranks - 1) / ranks;
  const bool all = table.test == "all_gather" || table.test == "reduce_scatter" ||
                   table.test == "alltoall" || table.test == "all_to_all";
  return all ? (ranks - 1) / ranks : 1;
}

Answer answer_of(const calibrate::LogCalibration& calibration) {
  return {"calibrate",
          "",
          [&] { return page_of(calibration); },
          [&] { return sizes_of(calibration); },
          [&] { return json_of(calibration); },
          line_suspicions(calibration),
          [&] { return figures_of(calibration); }};
}

}  // namespace syncline::reports
