// The way back: a strategy as a framework's configuration. A dialect suggests configurations; each
// is read again, and only one that comes to the same plan is given out.
#pragma once

#include <optional>
#include <string>

#include "core/plan.h"
#include "formats/dialect/dialect.h"
#include "formats/scenario/scenario.h"

namespace syncline::dialect {

struct Written {
  Json config;
  // What carries out the collectives is not the framework's to say: what a scenario says beside the
  // dialect, empty where the cluster's library takes it by itself, and the variable that makes the
  // library take it, "NCCL_ALGO=allreduce:tree" (write.h), empty where none is needed.
  std::string algorithm;
  std::string setting;
  // Reading it back exchanges the same gradients in the same collectives on the same streams. What
  // a framework does around them (time_difference) it does with any configuration.
  bool exact = false;
  std::string difference;  // otherwise: what the nearest configuration does differently
  Strategy strategy;       // as read back
};

// The algorithm that a strategy read back from a framework's words keeps of this one: its own where
// the cluster's library can be made to run it, otherwise empty.
std::string kept_algorithm(const Strategy& strategy, const Cluster& cluster);

// The configuration of that dialect, or the nearest that it can express; nothing where the dialect
// is not written at all. Throws InputError where the framework refuses whatever might say it.
std::optional<Written> write_config(const Dialect& dialect, const Strategy& strategy,
                                    const Workload& workload, const Cluster& cluster);

// How a user sets a configuration, on one line: the framework's code, or its keys.
std::string config_text(const Dialect& dialect, const Json& config);
// With blanks where it may be wrapped.
std::string on_one_line(const Json& json);

// What differs between two plans, in words; empty where they exchange the same gradients in the
// same collectives on the same streams.
std::string plan_difference(const plan::Plan& wanted, const plan::Plan& found);

// Why two plans that exchange the same may still take another time: padding, the work of encoding
// and copying, the moments of the updates. Never empty.
std::string time_difference(const plan::Plan& wanted, const plan::Plan& found);

// For rules that close a bucket once it holds at least a size: the sizes in MiB to try so that each
// of `closed` closes where it ends, whole numbers first. Empty without closed buckets.
std::vector<double> sizes_that_close(const std::vector<plan::Bucket>& closed);

// Which algorithm NCCL is to take for which collective, where a strategy names it: as a setting of
// NCCL where that says it, else as a table for the tuner plugin (backend_nccl/tuner).

// Lines of the plugin's table for a strategy on this workload and cluster; empty where NCCL chooses
// everything by itself, or the cluster's library is not NCCL.
std::string nccl_table(const Strategy& strategy, const Workload& workload, const Cluster& cluster);

// The variable that makes NCCL do the same, "NCCL_ALGO=allreduce:tree;reduce:ring" (the grammar of
// NCCL 2.24); empty where one collective runs by different algorithms on different communicators,
// which only the table says, and where nothing is to be set.
std::string nccl_setting(const Strategy& strategy, const Workload& workload,
                         const Cluster& cluster);

}  // namespace syncline::dialect
