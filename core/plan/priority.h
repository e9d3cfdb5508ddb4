// Priority scheduling, decided beforehand: the order in which buckets go when the network, whenever
// it is free, takes the most urgent of those that are ready (ByteScheduler, Peng et al. 2019).
// Executors then keep to that order, so that every one of them runs the same plan.
#pragma once

#include <vector>

#include "core/units.h"

namespace syncline::plan {

struct Urgent {
  Seconds ready = 0;
  int rank = 0;          // the lowest goes first; equal ones in the order of the list
  Seconds duration = 0;  // of its exchange alone on the network
  Bytes bytes = 0;
};

// Places in `items`, in the order in which they are handed to the network. What has been handed
// over can no longer be overtaken. `credit`: bytes that may be under way or waiting there; 0: a
// single one. One always may, however large.
std::vector<int> urgent_first(const std::vector<Urgent>& items, Bytes credit);

}  // namespace syncline::plan
