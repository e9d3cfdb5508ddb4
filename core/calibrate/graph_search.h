// Which graph NCCL saw on a cluster, as far as measured rows between nodes show. A graph decides
// what NCCL chose at each size (path_choice.h); every path chosen is then fitted (step_law.h), and
// the graph under which the rows are likeliest wins.
#pragma once

#include <cstddef>
#include <vector>

#include "core/cost/path_choice.h"
#include "core/cost/step_law.h"

namespace syncline::calibrate {

// One row of a table between nodes, with the share of the rate its GPUs a node have.
struct GraphSample {
  cost::StepRow row;
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
