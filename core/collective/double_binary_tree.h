// Two binary trees at once, each carrying half of the payload: log N start-up times like a tree,
// and for large payloads nearly the bandwidth of the ring, because the ranks with children in one
// tree are leaves of the other and so no port idles. Use it on many ranks.
// P. Sanders, J. Speck and J. L. Traff, "Two-tree algorithms for full bandwidth broadcast,
// reduction and scan", Parallel Computing 35 (2009); NCCL's tree algorithm since version 2.4.
#pragma once

#include "core/collective/algorithm.h"

namespace syncline::collective {

// Fits all_reduce, reduce and broadcast.
Algorithm double_binary_tree_algorithm();

}  // namespace syncline::collective
