// One function for each framework's dialect, and the list of all dialects.
#pragma once

#include <string>
#include <vector>

#include "formats/dialect/dialect.h"

namespace syncline::dialect {

// Host shares (dialect.h). Ends, no means: nobody measured the job at hand. DeepSpeed's ZeRO 1 and
// 2 took 2.6 times DDP's step on 8 A100 (OpenTau, issue 177), ZeRO 3 1.06, 1.7 and 3.2 times that
// of tensor and pipeline parallelism on 384, 768 and 1,536 A100 (Narayanan et al. 2021, table 2).
inline constexpr double kHooksOfPartitions = 1.6;
// DeepSpeed's stage 3 took 11 ms longer per step than stage 1 for each of BLOOM's 24 layers, with
// 560 M and 1.1 B parameters (BELLE, issue 402).
inline constexpr Seconds kHooksOfLayer = 11 * kMillisecond;
// FSDP's jobs of five code bases took 1.35 times the prediction, in the median.
inline constexpr double kHooksOfUnits = 0.45;

// Returns all frameworks' dialects, in the order that `syncline list` prints.
std::vector<Dialect> all_dialects();

// Returns Horovod's dialect: environment variables (numbers, or text as in a shell), and
// `compression` of DistributedOptimizer: "none" or "fp16".
Dialect horovod_dialect();

// Returns the dialect of MindSpore 2.2: parallel_mode and comm_fusion of set_auto_parallel_context,
// and the fusion ids of Cell.set_comm_fusion ("set_comm_fusion": {"layer1": 1, "head.bias": 0}, in
// call order: a later call overwrites; "" is the whole network).
Dialect mindspore_dialect();

// Returns Paddle's dialects: the DistributedStrategy of Fleet's static graph (as of 2021, the time
// of its documents), and the reducer of its dygraph DataParallel.
Dialect paddle_dialect();          // paddle.cc
Dialect paddle_dygraph_dialect();  // paddle_dygraph.cc

// Returns the dialect of DeepSpeed's configuration file: ZeRO stages 0 to 3. Source:
// deepspeedai/DeepSpeed edaa7221, deepspeed/runtime/zero/stage_1_and_2.py and config.py,
// deepspeed/runtime/engine.py (stage 0), deepspeed/runtime/utils.py (all_gather_dp_groups); for
// stage 3 also stage3.py and partitioned_param_coordinator.py of 00a31c99.
Dialect deepspeed_dialect();

// Returns the dialect of Hugging Face's Trainer: the arguments that it passes to
// DistributedDataParallel, or its DeepSpeed configuration. Ignores all other keys. Source:
// transformers/trainer.py (the keyword arguments for DistributedDataParallel), transformers PR
// #14756 (ddp_bucket_cap_mb).
Dialect hf_trainer_dialect();

// Returns the dialect of PyTorch's FSDP 1 and 2. Each wrapped module is a unit: its parameters are
// all-gathered together, and so are its gradients reduce-scattered. `units` names wrapped modules
// by parameter names, "model.layers.*" for each of a list; the rest is the root's. Source:
// torch/distributed/fsdp (FullyShardedDataParallel) and torch/distributed/fsdp/_fully_shard.
Dialect fsdp_dialect();

// Returns the dialects of torchft's LocalSGD and DiLoCo (torchft/local_sgd.py), by their
// constructors' arguments: sync_every, fragment_sync_delay, fragment_update_alpha, should_quantize,
// use_bucketization and bucket_cap_mb. num_fragments: modules in model_fragments; outer_optimizer:
// torch.optim.SGD's lr, momentum and nesterov; group_world_size: ranks of a replica group. diloco:
// MaxText's keys (src/maxtext/trainers/diloco, configs/types.py).
Dialect torchft_dialect();
Dialect diloco_dialect();

// Returns the dialect of PyTorch DistributedDataParallel, with buckets of at least bucket_cap_mb.
Dialect pytorch_ddp_dialect();

// Returns the line of a script that sets a configuration.
std::string ddp_code(const Json& config);
std::string fsdp_code(const Json& config);

}  // namespace syncline::dialect
