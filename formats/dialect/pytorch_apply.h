// Writing of strategies that no framework configuration expresses, for pytorch/syncline_apply.py:
// its reducer takes any grouping, streams, hierarchy, fp16, bf16, DGC and LocalSGD.
#pragma once

#include <string>

#include "formats/dialect/ddp_buckets.h"
#include "formats/scenario/scenario.h"

namespace syncline::dialect {

// Returns the reason why DistributedDataParallel fails inside torch for gradients in that codec
// (empty: uncompressed); empty if it does not fail.
std::string torch_refusal(const std::string& codec, const Workload& workload,
                          const Cluster& cluster, const TorchVersion& torch);

// Returns true if the job is known to train by Adam, which lacks the momentum that DGC corrects.
bool dgc_lacks_momentum(const Workload& workload);

// Returns the reason why that file cannot apply a strategy ("gradients are released at ticks");
// empty if it can.
std::string apply_refusal(const Strategy& strategy, const Workload& workload,
                          const Cluster& cluster);

// Returns the strategy for a compiled job without DistributedDataParallel: its graph is not cut.
Strategy with_whole_graph(Strategy strategy);

// Returns the strategy as that file applies it: the same exchanges, without another framework's
// additions (padding, copies into buffers, waits of the host, updates in parts, fused operators).
Strategy as_applied(const Strategy& strategy);

// Returns the line of code by which a job uses that file to apply a row of `tune`.
std::string apply_line(const std::string& row);

// Returns the strategy's table as a Python literal: its exchanges long after every ramp. Requires
// that apply_refusal is empty.
std::string apply_table(const Strategy& strategy, const Workload& workload, const Cluster& cluster);

}  // namespace syncline::dialect
