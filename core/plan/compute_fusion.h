// Compute fusion: a workload's operators rewritten by the patterns of Paddle's passes, in the order
// of its build strategy (fuse_relu_depthwise_conv, fuse_bn_act_ops, fuse_bn_add_act_ops,
// fuse_gemm_epilogue, fuse_elewise_add_act_ops, fuse_all_optimizer_ops; build_strategy.cc), along
// the edges of the graph and with those passes' guards. An intermediate value joins a pattern only
// if no operator outside reads it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/job.h"
#include "core/operators/evaluate.h"
#include "core/strategy.h"

namespace syncline::plan {

// Result of one switch: subgraphs, as Paddle's log counts them.
struct FusionMatch {
  std::string knob = {};
  int forward = 0;
  int backward = 0;
  std::string detail = {};  // of the optimiser, and why no subgraph matched; may be empty
};

struct FusedOperators {
  OperatorList operators;
  std::vector<FusionMatch> matches;  // one per enabled switch
};

FusedOperators fuse_operators(const Workload& workload, const ComputeFusion& fusion);

bool any(const ComputeFusion& fusion);

// Returns the workload with the times after compute fusion, without its operators; empty if no
// switch is on or the workload has no operators. No time is negative.
std::optional<Workload> fused_workload(const Workload& workload, const Device& device,
                                       const ComputeFusion& fusion);

// Returns one line for each switch: its matches and the time that they save. Switches in `silent`
// are on by default and get no line without a match.
std::vector<std::string> fusion_notes(const Workload& workload, const Device& device,
                                      const ComputeFusion& fusion,
                                      const std::vector<std::string>& silent);

}  // namespace syncline::plan
