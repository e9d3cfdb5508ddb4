// Compute fusion: a workload's operators rewritten by the patterns of Paddle's passes, in the order
// of its build strategy (fuse_relu_depthwise_conv, fuse_bn_act_ops, fuse_bn_add_act_ops,
// fuse_gemm_epilogue, fuse_elewise_add_act_ops, fuse_all_optimizer_ops; build_strategy.cc), along
// the edges of the graph and behind the guards that those passes have. An intermediate value joins
// a pattern only if nothing outside it reads it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/job.h"
#include "core/operators/evaluate.h"
#include "core/strategy.h"

namespace syncline::plan {

// What one switch found: subgraphs, as Paddle's log counts them.
struct FusionMatch {
  std::string knob = {};
  int forward = 0;
  int backward = 0;
  std::string detail = {};  // of the optimiser, and why nothing matched; may be empty
};

struct FusedOperators {
  OperatorList operators;
  std::vector<FusionMatch> matches;  // one for each switch that is on
};

FusedOperators fuse_operators(const Workload& workload, const ComputeFusion& fusion);

bool any(const ComputeFusion& fusion);

// Returns the workload with the times that compute fusion leaves, without its operators; nothing
// where no switch is on or the workload has no operators. No time falls below zero.
std::optional<Workload> fused_workload(const Workload& workload, const Device& device,
                                       const ComputeFusion& fusion);

// In words, one line each: what every switch matched, and what that saves. `silent` names switches
// that are on by default and say nothing where they match nothing.
std::vector<std::string> fusion_notes(const Workload& workload, const Device& device,
                                      const ComputeFusion& fusion,
                                      const std::vector<std::string>& silent);

}  // namespace syncline::plan
