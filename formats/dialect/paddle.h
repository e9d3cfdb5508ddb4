// Shared code of Paddle's dialects. DistributedStrategy's training: DGC
// (meta_optimizers/dgc_optimizer.py, operators/dgc_op.h) and LocalSGD, fixed and adaptive
// (meta_optimizers/localsgd_optimizer.py).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/dialect/changes.h"
#include "formats/dialect/dialect.h"
#include "formats/json/reader.h"

namespace syncline::dialect {

// Reads dgc, localsgd, adaptive_localsgd and their configs. One worker uses none of them.
void read_paddle_training(Reader& config, const Workload& workload, const Cluster& cluster,
                          Reading& reading);

// Reads a value as the property setters of Paddle's DistributedStrategy do. For a value of another
// type Paddle prints "WARNING: KEY should have value of TYPE type" and keeps the previous value.
// These functions do the same and add a note.

bool paddle_flag(Reader& config, std::string_view key, bool before,
                 std::vector<std::string>& notes);
// Reads an int32 field; Python's True and False are ints too.
std::int64_t paddle_integer(Reader& config, std::string_view key, std::int64_t before,
                            std::vector<std::string>& notes);
// Reads a float field; the int 50 is refused, 50.0 is accepted.
double paddle_real(Reader& config, std::string_view key, double before,
                   std::vector<std::string>& notes);

// A switch of build_strategy for fused operators below the gradients: its key and default.
struct BuildSwitch {
  const char* key;
  bool ComputeFusion::*on;
  bool usual = false;
};
inline constexpr BuildSwitch kBuildSwitches[]{
    {"fuse_relu_depthwise_conv", &ComputeFusion::fuse_relu_depthwise_conv},
    {"fuse_bn_act_ops", &ComputeFusion::fuse_bn_act_ops},
    {"fuse_bn_add_act_ops", &ComputeFusion::fuse_bn_add_act_ops, true},
    {"fuse_gemm_epilogue", &ComputeFusion::fuse_gemm_epilogue},
    {"fuse_elewise_add_act_ops", &ComputeFusion::fuse_elewise_add_act_ops},
    {"fuse_all_optimizer_ops", &ComputeFusion::fuse_all_optimizer_ops}};

// Writes a strategy as Paddle's DistributedStrategy: configurations, single changes and candidates.

std::vector<Json> suggest_paddle(const Strategy& strategy, const std::vector<plan::Bucket>& buckets,
                                 const Workload& workload, const Cluster& cluster);
Changes paddle_changes(const Json& config, const Cluster& cluster);
std::vector<Json> paddle_candidates(const Strategy& winner, const Workload& workload,
                                    const Cluster& cluster, const Partitions& partitions);

}  // namespace syncline::dialect
