// How far times may be off where nothing was measured: log(true time / said time) of a payload, its
// median and its standard deviation, by what carries it. Found on published logs of nccl-tests, of
// networks written from data sheets; tests/calibrate/prior_test.cc works the table out again, says
// of which logs, and how well it holds for each network that it left out.
#pragma once

#include "core/scenario/cluster.h"

namespace syncline::collective {

// What a group's payload passes: the network between nodes, or, inside one, the links of its GPUs.
struct Path {
  bool across = true;
  Fabric fabric = Fabric::kUnknown;  // of the network between nodes
  bool nvlink = false;               // inside nodes, or of one
};

struct Prior {
  double bias = 0;
  double spread = 0;  // around the bias
};

// Of NCCL's model on the links as given (NcclCostModel), for a payload of `bytes` (above 0).
Prior nccl_prior(const Path& path, double bytes);

// Of latency and bandwidth, whatever the library.
Prior links_prior(double bytes);

}  // namespace syncline::collective
