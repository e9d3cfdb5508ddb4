#include "reports/calibration.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/input/scenario_json.h"
#include "core/measure/doubt.h"
#include "core/measure/remarks.h"
#include "reports/fields.h"
#include "reports/figures.h"
#include "reports/format.h"
#include "reports/grid.h"
#include "reports/log_plot.h"

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

Grid rows_of(const calibrate::ComparedTable& table, const char* answer) {
  Grid grid{{{"size"}, {"measured"}, {answer}, {"error"}, {"80 %\ninterval"}, {"", false}}, {}};
  for (const auto& row : table.rows) {
    grid.lines.push_back(
        {{bytes_text(static_cast<double>(row.bytes)), seconds_text(row.measured),
          seconds_text(row.predicted), percent_text((row.predicted / row.measured - 1) * 100),
          "+-" + share(high_factor(row) - 1), row.in_range ? "" : "out of range"},
         false});
  }
  return grid;
}

Grid summary_of(const calibrate::LogCalibration& calibration) {
  Grid grid{{{"table", false},
             {"nodes"},
             {"GPUs\na node"},
             {"rows", true, 4},
             {"use", false, 1},
             {"median\nerror"},
             {"90th\npercentile", true, 3},
             {"worst"},
             {"left out,\nmean", true, 2},
             {"law", false, 5}},
            {}};
  const auto add = [&](const calibrate::ComparedTable& table, const char* use) {
    const measure::ErrorSummary errors = calibrate::errors_of(table);
    grid.lines.push_back(
        {{table_test(table) + ", " + table.file, std::to_string(table.nodes),
          std::to_string(table.gpus_per_node), count_text(static_cast<double>(table.rows.size())),
          use, share(errors.median), share(errors.p90), share(errors.worst),
          table.left_out < 0 ? "-" : share(table.left_out), table.form},
         false});
  };
  for (const auto& table : calibration.fitted) add(table, "calibrated");
  for (const auto& table : calibration.against) add(table, "predicted");
  return grid;
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

// Whether a share of the line rate is good. The yardsticks are the best rates between nodes of the
// logs in scenarios/measured/nccl-tests over what their headers say the NICs are rated; what is
// good and usual, where those lie.
std::string line_sentence(const calibrate::LineShare& line) {
  constexpr double kGood = 0.85;
  constexpr double kUsual = 0.6;
  const std::string verdict = line.share >= kMostOfLine ? "more than such a line carries"
                              : line.share > 1
                                  ? "more than the line, as with two nodes a tree can have"
                              : line.share >= kGood  ? "good"
                              : line.share >= kUsual ? "usual"
                                                     : "poor";
  return "At its best a node sends " + plain_number(line.rate / kGigabytePerSecond) + " GB/s, " +
         share(line.share) + " of the line rate of " +
         plain_number(line.line / kGigabytePerSecond) + " GB/s: " + verdict +
         ". Published: 98 % on H100 nodes with InfiniBand, 94 % on 10 Gbit/s Ethernet, 92 % on "
         "GH200 Alps, 88 % on A100 with EFA, 74 % on Polaris with libfabric, 64 % on A100 ND v4, "
         "43 % on 2080 Ti with InfiniBand, 19 % on Polaris over TCP.";
}

std::vector<std::string> line_doubts(const calibrate::LogCalibration& calibration) {
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
  if (calibration.law.scale) {
    const cost::ScaleLaw& scale = *calibration.law.scale;
    facts.push_back("Between nodes, at all counts: " + plural(scale.steps.size(), "law") +
                    " of an algorithm and protocol, median error " + share(scale.in_sample) +
                    " over their own rows of 64 KiB and more; a node sends " +
                    plain_number(scale.prior.bandwidth / kGigabytePerSecond) + " GB/s.");
  }
  if (calibration.line) facts.push_back(line_sentence(*calibration.line));
  if (calibration.law.tree) {
    const cost::TreeFactor& tree = *calibration.law.tree;
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
    page.blocks.push_back(rows_of(table, answer));
  }
}

Page page_of(const calibrate::LogCalibration& calibration) {
  Page page{title(), "", {}};
  add_tables(page, calibration.fitted, "fitted");
  add_tables(page, calibration.against, "predicted");
  page.blocks.push_back(Listing{"text", text_plot(series_of(calibration)), true});
  page.blocks.push_back(summary_of(calibration));
  std::string facts;
  for (const auto& fact : facts_of(calibration)) facts += (facts.empty() ? "" : "\n") + fact;
  for (const auto& warning : calibration.warnings) facts += "\nwarning: " + one_line(warning);
  page.blocks.push_back(facts);
  return page;
}

// Tables in the order in which they were fitted, then those predicted.
template <typename Each>
void each_row(const calibrate::LogCalibration& calibration, Each each) {
  for (const auto& table : calibration.fitted) {
    for (const auto& row : table.rows) each(table, row, "calibrated");
  }
  for (const auto& table : calibration.against) {
    for (const auto& row : table.rows) each(table, row, "predicted");
  }
}

CsvTable csv_of(const calibrate::LogCalibration& calibration) {
  CsvTable csv{{"file", "test", "nodes", "gpus_per_node", "use", "bytes", "measured_s",
                "predicted_s", "low_s", "high_s", "in_range"},
               {}};
  each_row(calibration, [&](const calibrate::ComparedTable& table,
                            const calibrate::ComparedRow& row, const char* use) {
    csv.lines.push_back({table.file, table_test(table), std::to_string(table.nodes),
                         std::to_string(table.gpus_per_node), use, std::to_string(row.bytes),
                         exact(row.measured).dump(), exact(row.predicted).dump(),
                         exact(row.predicted / high_factor(row)).dump(),
                         exact(row.predicted * high_factor(row)).dump(),
                         row.in_range ? "true" : "false"});
  });
  return csv;
}

Json tables_json(const std::vector<calibrate::ComparedTable>& tables) {
  Json list = Json::array();
  for (const auto& table : tables) {
    const measure::ErrorSummary errors = calibrate::errors_of(table);
    Json rows = Json::array();
    for (const auto& row : table.rows) {
      rows.push_back(
          {{"bytes", row.bytes},
           {"measured_s", row.measured},
           {"predicted_s", row.predicted},
           {"low_s", row.predicted / high_factor(row)},
           {"high_s", row.predicted * high_factor(row)},
           {"error_percent", (row.predicted / row.measured - 1) * 100},
           {"bus_bytes_per_s", static_cast<double>(row.bytes) * bus_share(table) / row.measured},
           {"in_range", row.in_range}});
    }
    list.push_back({{"file", table.file},
                    {"clean", table.clean},
                    {"outlier_bytes", table.outliers},
                    {"test", table_test(table)},
                    {"nodes", table.nodes},
                    {"gpus_per_node", table.gpus_per_node},
                    {"model", table.form},
                    {"median_error_percent", errors.median * 100},
                    {"p90_error_percent", errors.p90 * 100},
                    {"worst_error_percent", errors.worst * 100},
                    {"rows", rows}});
    if (table.left_out >= 0) list.back()["left_out_percent"] = table.left_out * 100;
  }
  return list;
}

Json json_of(const calibrate::LogCalibration& calibration) {
  Json json = {{"in_sample_percent", calibration.in_sample * 100},
               {"left_out_percent", nullptr},
               {"fitted", tables_json(calibration.fitted)},
               {"against", tables_json(calibration.against)},
               {"law", input::law_json(calibration.law)},
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
          [&] { return csv_of(calibration); },
          [&] { return json_of(calibration); },
          line_doubts(calibration),
          [&] { return figures_of(calibration); }};
}

}  // namespace syncline::reports
