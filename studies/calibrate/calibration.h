// Result of `syncline calibrate`: the cost model fitted to measured tables, its error on them and
// on tables held out of the fit.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/cost/cost_model.h"
#include "core/cost/measured_table.h"
#include "formats/scenario/scenario.h"
#include "studies/calibrate/device_fit.h"
#include "studies/fidelity/fidelity.h"

namespace syncline::calibrate {

struct ComparedRow {
  Bytes bytes = 0;
  Seconds measured = 0;
  Seconds predicted = 0;
  bool in_range = true;
  double spread = 0;  // standard deviation of log(true time / predicted), above 0
};

struct ComparedTable {
  std::string file;
  std::string test;  // "all_reduce", ...
  int nodes = 0;
  int gpus_per_node = 0;
  cost::ForcedAlgorithm forced = cost::ForcedAlgorithm::kNone;
  bool clean = true;
  std::vector<ComparedRow> rows = {};
  std::string form = {};  // form of the cost model, if the table was fitted
  double left_out = -1;   // mean relative error, each size left out; negative: unknown
  std::vector<Bytes> outliers = {};
};

// Best bandwidth that a node reaches, as a share of its NICs' rated one, in one direction.
struct LineShare {
  BytesPerSecond rate = 0;  // the best busbw between nodes
  BytesPerSecond line = 0;
  double share = 0;
};

// Comparison of a row with NCCL's model on the data sheet of a kind of node, corrected by published
// logs of such networks (core/collective/library.h).
struct BesideOthers {
  std::size_t table = 0;  // index in LogCalibration::fitted
  Bytes bytes = 0;
  double longer = 1;       // measured time / median of such networks
  double slower_than = 0;  // share of such networks that are faster
};

struct LogCalibration {
  cost::MeasuredCostModel cost_model;  // read back from the JSON that is written
  Json cluster;
  std::vector<ComparedTable> fitted;
  std::vector<ComparedTable> against;
  std::vector<std::string> warnings;
  std::optional<DeviceFit> device;
  std::optional<LineShare> line;
  std::string node;                // kind of node compared with in `beside`; empty: none
  std::vector<std::string> kinds;  // kinds of node that have the logs' GPUs, if none was named
  std::vector<BesideOthers> beside;
  double in_sample = 0;  // mean relative error over all fitted rows
  double left_out = -1;  // the same, each size left out in turn; negative: too few sizes
};

// A size of 64 KiB or more with a rate at least a quarter below that of the smaller size `than`.
// `share`: its rate over that size's.
struct SlowSize {
  Bytes bytes = 0;
  Bytes than = 0;
  double share = 1;
};
std::vector<SlowSize> slow_sizes(const ComparedTable& table);

// Returns a summary of a table's relative errors, as shares.
measure::ErrorSummary errors_of(const ComparedTable& table);

// Fits the cost model to `tables` and predicts `against`. `tree`: cost of a forced tree on another
// network, for forced trees not measured here. Throws InputError if two tables of the same shape
// and sizes differ in time by half or more, or if a table in `against` is outside the cost model.
// Requires known kinds and counts.
LogCalibration calibration_of(const std::vector<cost::MeasuredTable>& tables,
                              const std::vector<cost::MeasuredTable>& against,
                              const std::string& name,
                              const std::optional<cost::TreeFactor>& tree = {});

// Compares the best rate between nodes with the rated one of a node's NICs. Throws InputError if no
// table has several nodes.
void set_line_rate(LogCalibration& calibration, BytesPerSecond line);

// Returns the known nodes with the GPUs that the logs name, in the widest log's number per node.
std::vector<std::string> nodes_of_gpus(const std::vector<cost::MeasuredTable>& tables);

// Compares the rows nearest to 64 KiB, 1, 16 and 256 MiB of each fitted table with the times
// expected of such nodes. `tables`: the fitted ones. Throws InputError for an unknown node.
void set_node(LogCalibration& calibration, const std::vector<cost::MeasuredTable>& tables,
              const std::string& node);

// Sets the device of the calibration and of its cluster.
void set_device(LogCalibration& calibration, const DeviceFit& device);

// Published logs as fidelity tables: calibrates on some, predicts others and keeps the errors.

// Returns one table for each comparison and predicted log, without sizes below the list's
// from_bytes. Throws InputError for a wrong list. `progress` is called after each comparison with
// the numbers done and in all; `interrupted` is asked in between.
std::vector<measure::FidelityTable> log_fidelity(
    const std::string& path, const std::function<void(std::size_t, std::size_t)>& progress,
    const std::function<bool()>& interrupted);

}  // namespace syncline::calibrate
