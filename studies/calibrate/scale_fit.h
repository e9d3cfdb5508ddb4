// From measured tables of one cluster to its cost model (cost_model.h). The part between nodes is
// found in two nested searches: over the graphs that NCCL may have seen (find_graph), which decide
// what it chose at each size (step_cost_model.h), and for each of them over the parameters of every
// algorithm and protocol chosen. The graph under which the measured rows are likeliest wins.
#pragma once

#include <cstddef>
#include <vector>

#include "core/cost/cost_model.h"
#include "core/cost/measured_table.h"
#include "core/cost/step_cost_model.h"

namespace syncline::calibrate {

// Fitting the cost model of one table (cost_model.h): every candidate by least squares of
// relative errors, and of the candidates the one that predicts best the sizes it has not seen.
struct SizeFit {
  cost::MeasuredTable measured;
  cost::SizeCostModel cost_model;
  std::vector<cost::MeasuredPoint> points;    // what was fitted, by ascending size
  std::vector<cost::MeasuredPoint> outliers;  // what was left out as disturbed
  // Means of |fitted / measured - 1| over the points: with all sizes seen, and for each size with
  // that size left out of the fit (of more than 64 sizes, 64 evenly spread ones are left out in
  // turn). The second is the honest one; with fewer than three sizes it is not known (negative).
  double in_sample = 0;
  double left_out = -1;
  // How far the cost model is off around each size, from the same left-out sizes and `noise`; and a
  // thousand times below and above them, where the table leaves open how the time goes on. Empty
  // with fewer than three sizes that leave nothing open.
  std::vector<cost::SizeSpread> spreads;
  // Standard deviation of the logarithm of one measured time: from repeated tables, and from the
  // two times of each size where the table is not clean. 0: nothing speaks of it.
  double noise = 0;
};

// The table's points: out of place, or in place for sizes that have no good out-of-place time.
// Disturbed are a first row that is slower than the next size by a quarter (the test's warm-up),
// and rows whose two times differ by 30 % where only the other one lies near the neighbours.
SizeFit points_of(const cost::MeasuredTable& table);

// Fits the points. Requires at least one.
SizeFit fit_sizes(SizeFit points);

// Places in a table's points: of all, or of some `most` evenly spread by their logarithms.
std::vector<std::size_t> spread_out(const std::vector<cost::MeasuredPoint>& points,
                                    std::size_t most);

struct FittedTables {
  cost::MeasuredCostModel cost_model;
  std::vector<SizeFit> tables;
};

// Requires tables with a kind and counts of nodes and GPUs. Several tables of the same counts and
// kind are joined, sizes measured twice by the mean of their times. Throws InputError where a table
// has no usable row.
FittedTables calibrate(const std::vector<cost::MeasuredTable>& tables);

// Graph, prior and the steps of the paths that the rows show. `bus`: the best rate that was
// measured, in bytes that a rank of a ring sends times the GPUs of a node. `fast`: it is more than
// the port of 200 Gbit/s that a GPU of the generations with one speed for all its graphs has.
// `inside_scale`: of NCCL's latencies inside a node. Rows of one table stand together.
cost::ScaleCostModel find_graph(const std::vector<cost::PathRow>& rows, BytesPerSecond bus,
                                bool fast, double inside_scale);

}  // namespace syncline::calibrate
