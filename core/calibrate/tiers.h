// From one network to another of the same nodes: what a forced algorithm costs, in units of what
// the network carries, stays what it is when the network changes.
#pragma once

#include <vector>

#include "core/calibrate/measured_table.h"

namespace syncline {

// time * bandwidth / bytes, the median over the points: 2 for an ideal pipelined tree, 4.1 for the
// double tree of NCCL 2.4 on PCIe nodes.
double bandwidth_factor(const std::vector<MeasuredPoint>& points, BytesPerSecond bandwidth);

inline Seconds time_by_factor(double factor, double bytes, BytesPerSecond bandwidth) {
  return factor * bytes / bandwidth;
}

}  // namespace syncline
