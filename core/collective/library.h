// What carries out the collectives of a framework on a cluster. A framework does not choose how its
// data move: the library that it calls does, so the same library costs every framework's rows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/scenario/cluster.h"

namespace syncline::collective {

// The compute capability of the NVIDIA GPU that the cluster's device speaks of (80 for an
// A100), 0 where it speaks of none.
int named_capability(const Cluster& cluster);

// The library of a cluster that does not say: NCCL where its GPUs are known, else the links alone.
Library likely_library(const Cluster& cluster);

// The algorithm of collectives for which nothing else is said: `nccl`, or the ring of Gloo and of
// the links.
std::string_view library_algorithm(const Cluster& cluster);

// What the library can be made to run. NCCL: its own choice, rings and trees; Gloo: rings; the
// links: everything.
std::vector<std::string> library_algorithms(const Cluster& cluster);

// Where the times of a framework's collectives come from, "NCCL, as calibrated here".
std::string library_words(const Cluster& cluster);

}  // namespace syncline::collective
