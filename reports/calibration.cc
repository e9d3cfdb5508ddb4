#include "reports/calibration.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "reports/format.h"
#include "reports/grid.h"
#include "reports/log_plot.h"

namespace syncline {
namespace {

std::string test_of(const ComparedTable& table) {
  switch (table.forced) {
    case ForcedAlgorithm::kRing:
      return table.test + " by a forced ring";
    case ForcedAlgorithm::kTree:
      return table.test + " by a forced tree";
    case ForcedAlgorithm::kNone:
      break;
  }
  return table.test;
}

std::string heading(const ComparedTable& table) {
  return test_of(table) + ", " + std::to_string(table.nodes) + " x " +
         std::to_string(table.gpus_per_node) + " GPUs, " + table.file;
}

std::string share(double value) { return share_text(value * 100); }

Grid rows_of(const ComparedTable& table, const char* answer) {
  Grid grid{{{"size"}, {"measured"}, {answer}, {"error"}, {"", false}}, {}};
  for (const auto& row : table.rows) {
    grid.lines.push_back(
        {{bytes_text(static_cast<double>(row.bytes)), seconds_text(row.measured),
          seconds_text(row.predicted), percent_text((row.predicted / row.measured - 1) * 100),
          row.in_range ? "" : "out of range"},
         false});
  }
  return grid;
}

Grid summary_of(const LogCalibration& calibration) {
  Grid grid{{{"table", false},
             {"nodes"},
             {"GPUs\na node"},
             {"rows"},
             {"use", false},
             {"median\nerror"},
             {"90th\npercentile"},
             {"worst"},
             {"left out,\nmean"},
             {"law", false}},
            {}};
  const auto add = [&](const ComparedTable& table, const char* use) {
    const ErrorSummary errors = errors_of(table);
    grid.lines.push_back(
        {{test_of(table) + ", " + table.file, std::to_string(table.nodes),
          std::to_string(table.gpus_per_node), count_text(static_cast<double>(table.rows.size())),
          use, share(errors.median), share(errors.p90), share(errors.worst),
          table.left_out < 0 ? "-" : share(table.left_out), table.form},
         false});
  };
  for (const auto& table : calibration.fitted) add(table, "calibrated");
  for (const auto& table : calibration.against) add(table, "predicted");
  return grid;
}

std::vector<PlotSeries> series_of(const LogCalibration& calibration) {
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

std::vector<std::string> facts_of(const LogCalibration& calibration) {
  std::vector<std::string> facts;
  facts.push_back("Mean error over the rows used: " + share(calibration.in_sample) +
                  (calibration.left_out < 0 ? std::string("; too few sizes to leave one out.")
                                            : "; with each size left out in turn: " +
                                                  share(calibration.left_out) + "."));
  if (calibration.law.scale) {
    const ScaleLaw& scale = *calibration.law.scale;
    facts.push_back("Between nodes, at all counts: " + plural(scale.steps.size(), "law") +
                    " of an algorithm and protocol, median error " + share(scale.in_sample) +
                    " over their own rows of 64 KiB and more; a node sends " +
                    plain_number(scale.prior.bandwidth / kGigabytePerSecond) + " GB/s.");
  }
  if (calibration.law.tree) {
    const TreeFactor& tree = *calibration.law.tree;
    facts.push_back("A forced tree costs " + plain_number(tree.factor) +
                    " x bytes / bandwidth, found on another network: " + one_line(tree.source) +
                    ".");
  }
  if (calibration.device) {
    const DeviceFit& device = *calibration.device;
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

std::string title() { return "Calibration from nccl-tests"; }

}  // namespace

std::string calibration_text(const LogCalibration& calibration) {
  std::string text = title() + "\n";
  for (const auto& table : calibration.fitted) {
    text += "\nFitted: " + one_line(heading(table)) + " (" + table.form + ")\n\n" +
            plain_grid(rows_of(table, "fitted"));
  }
  for (const auto& table : calibration.against) {
    text += "\nPredicted: " + one_line(heading(table)) + "\n\n" +
            plain_grid(rows_of(table, "predicted"));
  }
  text += "\n" + text_plot(series_of(calibration)) + "\n" + plain_grid(summary_of(calibration));
  text += "\n";
  for (const auto& fact : facts_of(calibration)) text += fact + "\n";
  for (const auto& warning : calibration.warnings) text += "warning: " + one_line(warning) + "\n";
  return text;
}

std::string calibration_markdown(const LogCalibration& calibration) {
  std::string text = "# " + title() + "\n\n" + markdown_grid(summary_of(calibration));
  for (const auto& fact : facts_of(calibration)) text += "\n" + markdown_text(fact) + "\n";
  for (const auto& warning : calibration.warnings) {
    text += "\nWarning: " + markdown_text(warning) + "\n";
  }
  for (const auto& table : calibration.fitted) {
    text += "\n## Fitted: " + markdown_text(heading(table)) + "\n\n" +
            markdown_grid(rows_of(table, "fitted"));
  }
  for (const auto& table : calibration.against) {
    text += "\n## Predicted: " + markdown_text(heading(table)) + "\n\n" +
            markdown_grid(rows_of(table, "predicted"));
  }
  return text;
}

std::string calibration_json(const LogCalibration& calibration) {
  Json against = Json::array();
  for (const auto& table : calibration.against) {
    Json rows = Json::array();
    for (const auto& row : table.rows) {
      rows.push_back(
          {{"bytes", row.bytes}, {"measured_s", row.measured}, {"predicted_s", row.predicted}});
    }
    against.push_back({{"file", table.file}, {"rows", rows}});
  }
  Json json = {{"in_sample_percent", calibration.in_sample * 100},
               {"left_out_percent", nullptr},
               {"against", against}};
  if (calibration.left_out >= 0) json["left_out_percent"] = calibration.left_out * 100;
  return json.dump(2) + "\n";
}

std::string calibration_svg(const LogCalibration& calibration) {
  return svg_plot(title(), series_of(calibration));
}

}  // namespace syncline
