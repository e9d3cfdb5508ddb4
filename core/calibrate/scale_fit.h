// From measured tables of one cluster to its law (law.h). The part between nodes is found in two
// nested searches: over the graphs that NCCL may have seen (find_graph), which decide what it
// chose at each size (step_law.h), and for each of them over the parameters of every algorithm and
// protocol chosen. The graph under which the measured rows are likeliest wins. Latencies and
// bandwidths of different paths are held together by a prior: all latencies are NCCL's own
// constants times one factor of the fabric, all bandwidths are near one rate.
#pragma once

#include <cstddef>
#include <vector>

#include "core/calibrate/size_fit.h"
#include "core/cost/law.h"
#include "core/cost/measured_table.h"
#include "core/cost/step_law.h"

namespace syncline::calibrate {

struct CalibratedTable {
  cost::MeasuredTable measured;
  SizeFit fit;
};

struct FittedTables {
  cost::MeasuredLaw law;
  std::vector<CalibratedTable> tables;
};

// Requires tables with a kind and counts of nodes and GPUs. Several tables of the same counts and
// kind are joined, sizes measured twice by the mean of their times. Throws InputError where a table
// has no usable row.
FittedTables calibrate(const std::vector<cost::MeasuredTable>& tables);

// One row of a table between nodes, with the share of the rate its GPUs a node have.
struct GraphSample {
  cost::PathRow row;
  cost::ForcedAlgorithm forced = cost::ForcedAlgorithm::kNone;
  std::size_t table = 0;
};

struct FoundGraph {
  cost::GraphGuess graph;
  cost::StepPrior prior;
  std::vector<cost::StepLaw> steps;  // of the paths that the rows show
  double cost = 0;                   // minus the logarithm of the likelihood
};

// `bus`: the best rate that was measured, in bytes that a rank of a ring sends times the GPUs of a
// node. `fast`: it is more than the port of 200 Gbit/s that a GPU of the generations with one speed
// for all its graphs has. `inside_scale`: of NCCL's latencies inside a node. Samples of one table
// stand together.
FoundGraph find_graph(const std::vector<GraphSample>& samples, BytesPerSecond bus, bool fast,
                      double inside_scale);

}  // namespace syncline::calibrate
