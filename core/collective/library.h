// The library that carries out the collectives of a framework on a cluster. A framework does not
// choose how its data move: its library does, so the same library costs every framework's rows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/cluster.h"

namespace syncline::collective {

// Returns the compute capability of the NVIDIA GPU that the cluster's device names (80 for an
// A100), 0 if it names none.
int named_capability(const Cluster& cluster);

// Returns the library of a cluster that names none: NCCL if its GPUs are known, else the links.
Library likely_library(const Cluster& cluster);

// Returns the default algorithm of collectives: `nccl`, or the ring of Gloo and of the links.
std::string_view library_algorithm(const Cluster& cluster);

// Returns the algorithms that the library can run. NCCL: its own choice, rings and trees; Gloo:
// rings; the links: everything.
std::vector<std::string> library_algorithms(const Cluster& cluster);

// Returns a clause on a framework's collectives: "NCCL runs the collectives, as calibrated here".
std::string library_words(const Cluster& cluster);

// Error of unmeasured times: median and standard deviation of log(true time / predicted time) of a
// payload, by path. Found on published logs of nccl-tests, on networks written from data sheets.
// tests/calibrate/prior_test.cc recomputes the table, lists its logs, and checks it on each network
// with that one left out.

// The path of a group's payload: the network between nodes, or, inside one, the links of its GPUs.
struct Path {
  bool across = true;
  Fabric fabric = Fabric::kUnknown;  // of the network between nodes
  bool nvlink = false;               // inside nodes, or of one
};

struct Prior {
  double bias = 0;
  double spread = 0;  // around the bias
};

// Returns the error of NcclCostModel's times for a payload above 0 bytes.
Prior nccl_prior(const Path& path, double bytes);

// Returns the error of times by latency and bandwidth of the links, for any library.
Prior links_prior(double bytes);

}  // namespace syncline::collective
