// Fits a cost model (cost_model.h) to measured tables of one cluster. The part between nodes takes
// two nested searches. The outer one goes over graphs that NCCL may have used (find_graph), which
// decide its choices per size (step_cost_model.h). The inner one goes over the parameters of every
// chosen algorithm and protocol. The graph with the likeliest measured rows wins.
#pragma once

#include <cstddef>
#include <vector>

#include "core/cost/cost_model.h"
#include "core/cost/measured_table.h"
#include "core/cost/step_cost_model.h"

namespace syncline::calibrate {

// Fit of the cost model of one table (cost_model.h): every candidate by least squares of relative
// errors. The candidate that best predicts left-out sizes wins.
struct SizeFit {
  cost::MeasuredTable measured;
  cost::SizeCostModel cost_model;
  std::vector<cost::MeasuredPoint> points;    // fitted points, by ascending size
  std::vector<cost::MeasuredPoint> outliers;  // points left out as disturbed
  // Means of |fitted / measured - 1| over the points: fitted to all sizes, and with each size left
  // out of the fit (of more than 64 sizes, 64 evenly spread ones in turn). The second estimates the
  // error at new sizes; with fewer than three sizes it is negative (unknown).
  double in_sample = 0;
  double left_out = -1;
  // Errors of the cost model around each size, from left-out sizes and `noise`, and a thousand
  // times below and above the sizes if the table leaves the growth of the time open there. Empty
  // with fewer than three sizes if they leave none open.
  std::vector<cost::SizeSpread> spreads;
  // Standard deviation of the logarithm of one measured time: from repeated tables, and from both
  // times of each size if the table is not clean. 0: unknown.
  double noise = 0;
};

// Returns the table's points: out of place, or in place for sizes without a good out-of-place time.
// Disturbed points: a first row slower than the next size by a quarter (the test's warm-up). Also
// rows with two times that differ by 30 %, if only the other time is near the neighbours.
SizeFit points_of(const cost::MeasuredTable& table);

// Fits the points. Requires at least one.
SizeFit fit_sizes(SizeFit points);

// Returns indices of a table's points: all, or `most` of them evenly spread by their logarithms.
std::vector<std::size_t> spread_points(const std::vector<cost::MeasuredPoint>& points,
                                       std::size_t most);

struct FittedTables {
  cost::MeasuredCostModel cost_model;
  std::vector<SizeFit> tables;
};

// Fits the tables. Tables of the same counts and kind are joined; a size measured twice gets the
// mean time. Throws InputError if a table has no usable row. Requires a kind and counts of nodes
// and GPUs.
FittedTables calibrate(const std::vector<cost::MeasuredTable>& tables);

// Finds graph, prior and the steps of the paths in the rows. `bus`: best measured rate, in bytes
// that a rank of a ring sends times the GPUs of a node. `fast`: that rate exceeds the 200 Gbit/s
// port of GPUs of generations with one speed for all graphs. `inside_scale`: factor of NCCL's
// latencies inside a node. Requires that rows of one table are adjacent.
cost::ScaleCostModel find_graph(const std::vector<cost::PathRow>& rows, BytesPerSecond bus,
                                bool fast, double inside_scale);

}  // namespace syncline::calibrate
