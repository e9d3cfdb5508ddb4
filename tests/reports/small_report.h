// Reports of a few rows, made by hand, for the tests of this room.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "studies/rows/report.h"

namespace syncline::test {

inline constexpr const char* kBandwidth = "cluster.inter.bandwidth_gbps";

inline measure::Row row(std::string strategy, double speedup, SweepPoint sweep = {}) {
  measure::Row result;
  result.strategy = std::move(strategy);
  result.executor = "model";
  result.sweep = std::move(sweep);
  result.metrics.step_time = 0.3725 / speedup;
  result.metrics.compute = 0.195;
  result.metrics.communication = 0.25;
  result.metrics.exposed = result.metrics.step_time - 0.195;
  result.metrics.lower_bound = 0.195;
  result.metrics.throughput = 256 / result.metrics.step_time;
  result.metrics.collectives = 161;
  result.metrics.bytes_on_wire = 128.0 * kMiB;
  result.speedup = speedup;
  return result;
}

inline SweepPoint at_bandwidth(double gbps) { return {{kBandwidth, Json(gbps)}}; }
inline SweepPoint at_bandwidth(int gbps) { return {{kBandwidth, Json(gbps)}}; }

inline measure::Report report_of(std::vector<measure::Row> rows,
                                 std::string baseline = "momentum") {
  measure::Report report;
  report.scenario = "dgc_pays";
  report.about = "Does sending a thousandth of the gradients pay?";
  report.workload = "resnet50";
  report.cluster = "two_nodes";
  report.executor = "model";
  report.baseline = std::move(baseline);
  report.seed = 7;
  report.sources = {"times measured on one V100"};
  report.rows = std::move(rows);
  return report;
}

// Two strategies at three bandwidths: the example of the README.
inline measure::Report dgc_report() {
  measure::Report report = report_of({});
  const std::pair<int, double> points[] = {{100, 0.985}, {10, 1.467}, {1, 6.55}};
  for (const auto& [gbps, speedup] : points) {
    report.rows.push_back(row("momentum", 1, at_bandwidth(gbps)));
    report.rows.push_back(row("dgc", speedup, at_bandwidth(gbps)));
  }
  return report;
}

// The same with published step times: one fitted, the others predicted.
inline measure::Report published_report() {
  measure::Report report = dgc_report();
  for (std::size_t i = 0; i < 3; ++i) {
    measure::Row& row = report.rows[i];
    row.published.emplace();
    row.published->strategy = row.strategy;
    row.published->step_time = 0.37;
    row.published->calibrated = i == 0;
    row.published->source = "a table";
    row.error_percent = (row.metrics.step_time / 0.37 - 1) * 100;
  }
  report.rows[0].left_out_error_percent = 2.25;
  report.rows[1].published->accuracy = 76.5;
  report.rows[1].published->note = "batch not given";
  report.fitted = {{"cluster.inter.latency_us", 35.25, {}}};
  measure::Split split;
  split.left_out = "momentum";
  split.parameters = {{"cluster.inter.latency_us", 36.0, {}}};
  split.rows = {report.rows[0]};
  report.splits = {split};
  return report;
}

}  // namespace syncline::test
