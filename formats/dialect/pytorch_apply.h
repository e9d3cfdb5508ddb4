// What no configuration of a framework says, written for pytorch/syncline_apply.py: a reducer of
// its own for any grouping, streams, hierarchy, fp16, bf16, DGC and LocalSGD.
#pragma once

#include <string>

#include "formats/dialect/ddp_buckets.h"
#include "formats/scenario/scenario.h"

namespace syncline::dialect {

// Why DistributedDataParallel fails inside torch with gradients that travel by that codec (empty:
// as they are), in words; empty where it does not.
std::string torch_refusal(const std::string& codec, const Workload& workload,
                          const Cluster& cluster, const TorchVersion& torch);

// True if the job is known to train by Adam, which lacks the momentum that DGC corrects.
bool dgc_lacks_momentum(const Workload& workload);

// Why that file cannot carry out a strategy, in words ("gradients are released at ticks"); empty
// where it can.
std::string apply_refusal(const Strategy& strategy, const Workload& workload,
                          const Cluster& cluster);

// The strategy in a compiled job without DistributedDataParallel, for which alone the graph is cut.
Strategy with_whole_graph(Strategy strategy);

// The strategy as that file carries it out: the same exchanges, without what another framework does
// around them (padding, copies into buffers, waits of the host, updates in parts, fused operators).
Strategy as_applied(const Strategy& strategy);

// The line that sets a row of `tune` in a job by that file.
std::string applied_by(const std::string& row);

// The strategy's table, a literal of Python: what it exchanges long after every ramp. Requires that
// nothing is in the way of applying it.
std::string apply_table(const Strategy& strategy, const Workload& workload, const Cluster& cluster);

}  // namespace syncline::dialect
