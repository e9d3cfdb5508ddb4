// What the files of Paddle's dialects share. DistributedStrategy's training: DGC
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

// Reads dgc, localsgd, adaptive_localsgd and their configs. With one worker none of them applies.
void read_paddle_training(Reader& config, const Workload& workload, const Cluster& cluster,
                          Reading& reading);

// Values as the property setters of Paddle's DistributedStrategy take them: one of another type is
// no error there. Paddle prints "WARNING: KEY should have value of TYPE type" and keeps what stood
// before; so do these, and leave a note.

bool paddle_flag(Reader& config, std::string_view key, bool before,
                 std::vector<std::string>& notes);
// An int32 field; Python's True and False are ints too.
std::int64_t paddle_integer(Reader& config, std::string_view key, std::int64_t before,
                            std::vector<std::string>& notes);
// A float field; the int 50 is not one, 50.0 is.
double paddle_real(Reader& config, std::string_view key, double before,
                   std::vector<std::string>& notes);

// Of build_strategy, what it fuses below the gradients: its words and their defaults.
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

// A strategy as Paddle's DistributedStrategy: single changes, and whole configurations.

std::vector<Json> suggest_paddle(const Strategy& strategy, const std::vector<plan::Bucket>& buckets,
                                 const Workload& workload, const Cluster& cluster);
Changes paddle_changes(const Json& config, const Cluster& cluster);
std::vector<Json> paddle_candidates(const Strategy& winner, const Workload& workload,
                                    const Cluster& cluster, const Partitions& partitions);

}  // namespace syncline::dialect
