// Writes a strategy as a framework's configuration. A dialect suggests configurations; each is read
// again, and is accepted only if it leads to the same plan.
#pragma once

#include <optional>
#include <string>

#include "core/plan.h"
#include "formats/dialect/dialect.h"
#include "formats/scenario/scenario.h"

namespace syncline::dialect {

struct Written {
  Json config;
  // Choice of the collectives' algorithm, outside of the framework. `algorithm`: the scenario's key
  // next to the dialect's; empty: the library chooses it by itself. `setting`: the variable that
  // makes the library choose it, "NCCL_ALGO=allreduce:tree"; empty: none is needed.
  std::string algorithm;
  std::string setting;
  // True if it reads back to the same gradients in the same collectives on the same streams. The
  // framework's other work (time_difference) is the same with any configuration.
  bool exact = false;
  std::string difference;  // if not exact: the differences of the nearest configuration
  Strategy strategy;       // as read back
};

// Returns the algorithm of this strategy that a strategy read back keeps: its own if the cluster's
// library can be made to run it, else empty.
std::string kept_algorithm(const Strategy& strategy, const Cluster& cluster);

// Returns the configuration of that dialect, or the nearest that it can express; nullopt if the
// dialect is not written. Throws InputError if the framework refuses all that might express it.
std::optional<Written> write_config(const Dialect& dialect, const Strategy& strategy,
                                    const Workload& workload, const Cluster& cluster);

// Returns one line that shows how a user sets a configuration: the framework's code or keys. A job
// that another code base cuts gets keys: a line of a script knows no mesh with further axes.
std::string config_text(const Dialect& dialect, const Json& config, const Parallel& parallel = {});
// Returns JSON on one line, with blanks at which it may be wrapped.
std::string on_one_line(const Json& json);

// Returns the differences between two plans in words; empty if they exchange the same gradients in
// the same collectives on the same streams.
std::string plan_difference(const plan::Plan& wanted, const plan::Plan& found);

// Returns reasons why two plans with the same exchanges may differ in time: padding, encoding and
// copying, the moments of the updates. Never empty.
std::string time_difference(const plan::Plan& wanted, const plan::Plan& found);

// Returns sizes in MiB, whole numbers first, for rules that close a bucket once it has at least the
// size. With each of them the buckets of `closed` end where they do. Empty without such buckets.
std::vector<double> sizes_that_close(const std::vector<plan::Bucket>& closed);

// NCCL's algorithm for each collective, if a strategy names one: a setting of NCCL if that can
// express it, else a table for the tuner plugin (backend_nccl/tuner).

// Returns lines of the plugin's table for a strategy on this workload and cluster; empty if NCCL
// chooses everything by itself, or the cluster's library is not NCCL.
std::string nccl_table(const Strategy& strategy, const Workload& workload, const Cluster& cluster);

// Returns the variable that makes NCCL do the same, "NCCL_ALGO=allreduce:tree;reduce:ring" (the
// grammar of NCCL 2.24). Empty if no setting is needed, or if one collective needs different
// algorithms on different communicators, which only the table can express.
std::string nccl_setting(const Strategy& strategy, const Workload& workload,
                         const Cluster& cluster);

}  // namespace syncline::dialect
