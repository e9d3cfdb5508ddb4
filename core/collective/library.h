// What carries out the collectives of a framework on a cluster. A framework does not choose how its
// data move: the library that it calls does, so the same library costs every framework's rows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/cluster.h"

namespace syncline::collective {

// Returns the compute capability of the NVIDIA GPU that the cluster's device speaks of (80 for an
// A100), 0 where it speaks of none.
int named_capability(const Cluster& cluster);

// Returns the library of a cluster that does not say: NCCL where its GPUs are known, else the links
// alone.
Library likely_library(const Cluster& cluster);

// Returns the algorithm of collectives for which nothing else is said: `nccl`, or the ring of Gloo
// and of the links.
std::string_view library_algorithm(const Cluster& cluster);

// What the library can be made to run. NCCL: its own choice, rings and trees; Gloo: rings; the
// links: everything.
std::vector<std::string> library_algorithms(const Cluster& cluster);

// Where the times of a framework's collectives come from, "NCCL, as calibrated here".
std::string library_words(const Cluster& cluster);

// How far times may be off where nothing was measured: log(true time / said time) of a payload, its
// median and its standard deviation, by what carries it. Found on published logs of nccl-tests, of
// networks written from data sheets; tests/calibrate/prior_test.cc works the table out again, says
// of which logs, and how well it holds for each network that it left out.

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
