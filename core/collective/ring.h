// The ring: every member sends only to the next one, so each port carries the fewest bytes that
// any all-reduce can, at the cost of 2(N-1) start-up times. Use it for large payloads on few
// ranks.
// P. Patarasuk and X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
// workstations", J. Parallel and Distributed Computing 69 (2009).
#pragma once

#include "core/collective/algorithm.h"

namespace syncline::collective {

// Fits every kind; reduce and broadcast, which run along an open chain, up to 1024 ranks.
Algorithm ring_algorithm();

}  // namespace syncline::collective
