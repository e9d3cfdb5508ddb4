// The way back: a strategy as a framework's configuration. A dialect suggests configurations; each
// is read again, and only one that comes to the same plan is given out.
#pragma once

#include <optional>
#include <string>

#include "core/dialect/dialect.h"
#include "core/plan/plan.h"

namespace syncline::dialect {

struct Written {
  Json config;
  bool exact = false;      // reading it back gives the same plan
  std::string difference;  // otherwise: what the nearest configuration does differently
  Strategy strategy;       // as read back
};

// The configuration of that dialect, or the nearest that it can express; nothing where the dialect
// is not written at all.
std::optional<Written> write_config(const Dialect& dialect, const Strategy& strategy,
                                    const Workload& workload, const Cluster& cluster);

// What differs between two plans, in words; empty where they exchange the same gradients in the
// same collectives on the same streams.
std::string plan_difference(const plan::Plan& wanted, const plan::Plan& found);

// For rules that close a bucket once it holds at least a size: the sizes in MiB to try so that each
// of `closed` closes where it ends, whole numbers first. Empty without closed buckets.
std::vector<double> sizes_that_close(const std::vector<plan::Bucket>& closed);

}  // namespace syncline::dialect
