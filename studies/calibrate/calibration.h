// What `syncline calibrate` prints: the cost model fitted to measured tables, its error on them and
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
  std::string form = {};  // of the cost model, where the table was fitted
  double left_out = -1;   // mean relative error, each size left out; negative: not known
  std::vector<Bytes> outliers = {};
};

// What a node sends at its best over what its NICs are rated, in one direction.
struct LineShare {
  BytesPerSecond rate = 0;  // the best busbw between nodes
  BytesPerSecond line = 0;
  double share = 0;
};

// A row beside what NCCL's model says on the data sheet of a kind of node and what published logs
// of such networks show beyond it (core/collective/library.h).
struct BesideOthers {
  std::size_t table = 0;  // of LogCalibration::fitted
  Bytes bytes = 0;
  double longer = 1;       // measured over the median of such networks
  double slower_than = 0;  // the share of such networks that take less
};

struct LogCalibration {
  cost::MeasuredCostModel cost_model;  // as read back from the JSON that is written
  Json cluster;
  std::vector<ComparedTable> fitted;
  std::vector<ComparedTable> against;
  std::vector<std::string> warnings;
  std::optional<DeviceFit> device;
  std::optional<LineShare> line;
  std::string node;                // that the rows below are compared with; empty: none
  std::vector<std::string> kinds;  // of node that have the logs' GPUs, where none was named
  std::vector<BesideOthers> beside;
  double in_sample = 0;  // mean relative error over all fitted rows
  double left_out = -1;  // the same with each size left out in turn; negative: too few sizes
};

// Sizes of 64 KiB and more that move fewer bytes a second than a smaller one does, by a quarter or
// more, and what share of its rate they have.
struct SlowSize {
  Bytes bytes = 0;
  Bytes than = 0;
  double share = 1;
};
std::vector<SlowSize> slow_sizes(const ComparedTable& table);

// Of a table's relative errors, as shares.
measure::ErrorSummary errors_of(const ComparedTable& table);

// Requires known kinds and counts. `tree`: what a forced tree cost on another network, for this
// cluster's forced trees where none was measured here. Throws InputError where two tables cannot be
// of one cluster: same collective, counts and sizes, times apart by half or more; or where a table
// in `against`, which is to be predicted, is of a kind or count outside the cost model.
LogCalibration calibration_of(const std::vector<cost::MeasuredTable>& tables,
                              const std::vector<cost::MeasuredTable>& against,
                              const std::string& name,
                              const std::optional<cost::TreeFactor>& tree = {});

// Compares the best rate between nodes with what a node's NICs are rated. Throws InputError where
// no table is of several nodes.
void set_line_rate(LogCalibration& calibration, BytesPerSecond line);

// The known nodes with the GPUs that the logs name, as many as the widest of them used.
std::vector<std::string> nodes_of_gpus(const std::vector<cost::MeasuredTable>& tables);

// Compares the rows nearest to 64 KiB, 1, 16 and 256 MiB of each fitted table with what such nodes
// are expected to take. `tables`: those that were fitted. Throws InputError for a node that is not
// known.
void set_node(LogCalibration& calibration, const std::vector<cost::MeasuredTable>& tables,
              const std::string& node);

// Puts the device into the calibration and its cluster.
void set_device(LogCalibration& calibration, const DeviceFit& device);

// Published logs as fidelity tables: calibrate on some, predict others, and keep the errors.

// One table for each comparison and predicted log. Sizes below `from_bytes` are left out. Throws
// InputError for a wrong list. `progress` is called after each comparison with how many are done
// and wanted, `interrupted` asked between them.
std::vector<measure::FidelityTable> log_fidelity(
    const std::string& path, const std::function<void(std::size_t, std::size_t)>& progress,
    const std::function<bool()>& interrupted);

}  // namespace syncline::calibrate
