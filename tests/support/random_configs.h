// Small random scenarios in the words of a framework: its configuration over the keys that decide
// what is exchanged when, on a model with modules, accumulation and measured copies.
#pragma once

#include <cstdint>
#include <string>

#include "formats/dialect/dialect.h"
#include "tests/support/random_scenario.h"

namespace syncline::test {

// A model of layers between an embedding and a head.
inline Json random_modules(Dice& dice) {
  Json tensors = Json::array();
  const auto add = [&](const std::string& name) {
    const int rows = dice.pick<int>({1, 8, 64, 256, 1000});
    tensors.push_back({{"name", name},
                       {"shape", Json::array({rows, dice.pick<int>({16, 240, 1200})})},
                       {"backward_us", dice.pick<int>({0, 20, 150, 700, 3000})}});
  };
  add("head.weight");
  for (int layer = dice.between(1, 5); layer >= 0; --layer) {
    const std::string module = "model.layers." + std::to_string(layer);
    for (const char* part : {".mlp.weight", ".mlp.bias", ".att.weight"}) {
      if (dice.chance(85)) add(module + part);
    }
  }
  add("model.embed.weight");
  Json workload{{"name", "random"},
                {"batch", dice.between(1, 8)},
                {"forward_ms", dice.pick<int>({0, 1, 10})},
                {"update_ms", dice.pick<int>({0, 1})},
                {"tensors", tensors}};
  if (dice.chance(30)) workload["host_gap_ms"] = dice.between(0, 2);
  if (dice.chance(30)) workload["micro_batches"] = dice.between(2, 3);
  if (dice.chance(30)) {
    workload["buffers"] = Json::array({Json{{"name", "mean"}, {"shape", Json::array({64})}}});
    workload["buffer_broadcast_ms"] = dice.between(0, 2);
  }
  if (dice.chance(30)) {
    for (auto& tensor : workload["tensors"]) {
      tensor["copy_in_us"] = dice.between(0, 50);
      tensor["copy_out_us"] = dice.between(0, 50);
    }
  }
  return workload;
}

inline Json random_pytorch(Dice& dice) {
  Json config = Json::object();
  if (dice.chance(40))
    config["bucket_cap_mb"] = dice.between(1, 24) / 4.0;
  else if (dice.chance(40))
    config["bucket_cap_mb_list"] = {0.5, dice.between(1, 9) / 2.0, 1};
  if (dice.chance(30)) config["gradient_as_bucket_view"] = true;
  // A list of limits in the order of the first step is read, but not written.
  const bool listed = config.contains("bucket_cap_mb_list");
  if (dice.chance(20) && !listed) config["find_unused_parameters"] = true;
  if (dice.chance(20)) config["broadcast_buffers"] = false;
  const auto hook =
      dice.pick<std::string>({"", "", "fp16_compress_hook", "bf16_compress_hook", "powerSGD_hook",
                              "batched_powerSGD_hook", "post_localSGD_hook"});
  if (!hook.empty()) config["comm_hook"] = hook;
  if (hook == "powerSGD_hook" || hook == "batched_powerSGD_hook") {
    config["PowerSGDState"] = {{"matrix_approximation_rank", dice.between(1, 4)},
                               {"start_powerSGD_iter", 2}};
  }
  if (hook == "post_localSGD_hook") {
    config["PostLocalSGDState"] = {{"start_localSGD_iter", 3},
                                   {"post_local_gradient_allreduce", dice.chance(50)}};
    config["PeriodicModelAverager"] = {{"period", dice.between(2, 4)}};
    return config;  // which goes through its steps uncompiled
  }
  if (dice.chance(25)) config["no_sync"] = true;
  const bool small = !config.contains("bucket_cap_mb") || config["bucket_cap_mb"] < 1;
  if (dice.chance(25) && config.contains("bucket_cap_mb")) {
    config["torch_compile"] = {{"optimize_ddp", small ? Json(false) : Json(dice.chance(60))}};
  }
  return config;
}

inline Json random_megatron(Dice& dice) {
  Json config = Json::object();
  if (dice.chance(75)) config["overlap-grad-reduce"] = true;
  if (dice.chance(60)) config["ddp-bucket-size"] = dice.between(1, 2'000'000);
  if (!config.contains("ddp-bucket-size") && dice.chance(20)) {
    config["ddp-num-buckets"] = dice.between(1, 8);
  }
  if (dice.chance(50)) config["use-distributed-optimizer"] = true;
  const bool both =
      config.contains("overlap-grad-reduce") && config.contains("use-distributed-optimizer");
  if (both && dice.chance(50)) config["overlap-param-gather"] = true;
  if (dice.chance(20)) config["ddp-pad-buckets-for-high-nccl-busbw"] = true;
  return config;
}

inline Json random_deepspeed(Dice& dice) {
  Json zero{{"stage", dice.between(0, 3)}};
  if (dice.chance(60)) zero["overlap_comm"] = dice.chance(60);
  if (dice.chance(80)) zero["reduce_bucket_size"] = dice.between(1, 2'000'000);
  if (dice.chance(20)) zero["contiguous_gradients"] = false;
  if (dice.chance(30)) zero["use_multi_rank_bucket_allreduce"] = false;
  if (dice.chance(60)) zero["stage3_prefetch_bucket_size"] = dice.between(0, 500'000);
  if (dice.chance(70)) zero["stage3_param_persistence_threshold"] = dice.between(0, 50'000);
  if (dice.chance(60)) zero["stage3_max_reuse_distance"] = dice.between(0, 1'000'000);
  if (dice.chance(50)) zero["stage3_max_live_parameters"] = dice.between(0, 1'500'000);
  Json config{{"zero_optimization", zero}};
  if (dice.chance(20)) config["communication_data_type"] = "fp16";
  if (zero["stage"] == 3) config.erase("communication_data_type");
  return config;
}

inline Json random_fsdp(Dice& dice) {
  Json config{{"units", Json::array()}};
  if (dice.chance(80)) config["units"].push_back("model.layers.*");
  if (dice.chance(30)) config["units"].push_back("head");
  if (dice.chance(20)) config["units"].push_back("model");
  if (dice.chance(50)) {
    config["version"] = 1;
    config["sharding_strategy"] =
        dice.pick<std::string>({"FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD"});
  } else {
    config["reshard_after_forward"] = dice.chance(60);
  }
  if (dice.chance(30)) config["no_sync"] = true;
  return config;
}

inline Json random_hf_trainer(Dice& dice) {
  if (dice.chance(40)) return {{"deepspeed", random_deepspeed(dice)}};
  Json config = Json::object();
  if (dice.chance(60)) config["ddp_bucket_cap_mb"] = dice.between(1, 8);
  if (dice.chance(70)) config["ddp_find_unused_parameters"] = dice.chance(50);
  if (dice.chance(20)) config["ddp_broadcast_buffers"] = false;
  if (dice.chance(20)) config["torch_compile"] = true;
  return config;
}

inline Json random_horovod(Dice& dice) {
  return {{"HOROVOD_FUSION_THRESHOLD", dice.between(0, 4) * 1'000'000},
          {"HOROVOD_CYCLE_TIME", dice.between(1, 5)}};
}

inline Json random_paddle(Dice& dice) {
  Json config{{"fuse_grad_size_in_MB", dice.between(1, 8)}};
  if (dice.chance(30)) {
    config["nccl_comm_num"] = dice.between(1, 3);
    config["sync_nccl_allreduce"] = dice.chance(50);
  }
  return config;
}

// A configuration of that framework; least where nothing of it is drawn.
inline Json random_config(Dice& dice, const std::string& framework) {
  if (framework == "pytorch") return random_pytorch(dice);
  if (framework == "megatron") return random_megatron(dice);
  if (framework == "deepspeed") return random_deepspeed(dice);
  if (framework == "fsdp") return random_fsdp(dice);
  if (framework == "hf_trainer") return random_hf_trainer(dice);
  if (framework == "horovod") return random_horovod(dice);
  if (framework == "paddle") return random_paddle(dice);
  return dialect::least_config(*dialect::find_dialect(framework));
}

// One strategy, in that framework's words.
inline Json random_framework_scenario(std::uint64_t seed, const std::string& framework,
                                      int most_ranks) {
  Dice dice(seed);
  Json root{{"name", "random"},
            {"workload", random_modules(dice)},
            {"cluster", random_small_cluster(dice, most_ranks)}};
  Json& device = root["cluster"]["device"];
  if (dice.chance(30)) {
    device["overlap_slowdown"] = dice.between(0, 30) / 100.0;
    device["overlap_collective_slowdown"] = dice.between(0, 30) / 100.0;
    device["overlap_delay_us"] = dice.between(0, 100);
  }
  root["strategies"] = Json::array(
      {Json{{"name", "s"}, {"dialect", framework}, {"config", random_config(dice, framework)}}});
  return root;
}

}  // namespace syncline::test
