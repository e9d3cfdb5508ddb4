// From measured tables of one cluster to its law (law.h). The part between nodes is found in two
// nested searches: over the graphs that NCCL may have seen (graph_search.h), which decide what it
// chose at each size, and for each of them over the parameters of every algorithm and protocol
// chosen. The graph under which the measured rows are likeliest wins. Latencies and bandwidths of
// different paths are held together by a prior: all latencies are NCCL's own constants times one
// factor of the fabric, all bandwidths are near one rate.
#pragma once

#include <vector>

#include "core/calibrate/size_fit.h"
#include "core/cost/law.h"
#include "core/cost/measured_table.h"

namespace syncline::calibrate {

struct CalibratedTable {
  cost::MeasuredTable measured;
  SizeFit fit;
};

struct Calibrated {
  cost::MeasuredLaw law;
  std::vector<CalibratedTable> tables;
};

// Requires tables with a kind and counts of nodes and GPUs. Several tables of the same counts and
// kind are joined, sizes measured twice by the mean of their times. Throws InputError where a table
// has no usable row.
Calibrated calibrate(const std::vector<cost::MeasuredTable>& tables);

}  // namespace syncline::calibrate
