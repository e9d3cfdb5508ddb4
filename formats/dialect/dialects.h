// The frameworks whose configurations are read, a function each, and all of them.
#pragma once

#include <string>
#include <vector>

#include "formats/dialect/dialect.h"

namespace syncline::dialect {

// Every framework, in the order in which users see them.
std::vector<Dialect> all_dialects();

// Horovod's environment variables (numbers, or text as in a shell), and `compression` of
// DistributedOptimizer: "none" or "fp16".
Dialect horovod_dialect();

// MindSpore 2.2: parallel_mode and comm_fusion of set_auto_parallel_context, and the fusion ids of
// Cell.set_comm_fusion ("set_comm_fusion": {"layer1": 1, "head.bias": 0}, in the order of the
// calls: a later one overwrites an earlier one; "" is the whole network).
Dialect mindspore_dialect();

// Paddle: the DistributedStrategy of Fleet's static graph (as of 2021, the time of its documents),
// and the reducer of its dygraph DataParallel, each a dialect of its own.
Dialect paddle_dialect();          // paddle.cc
Dialect paddle_dygraph_dialect();  // paddle_dygraph.cc

// DeepSpeed's configuration file: ZeRO stages 0 to 3.
// Source: deepspeedai/DeepSpeed edaa7221, deepspeed/runtime/zero/stage_1_and_2.py and config.py,
// deepspeed/runtime/engine.py (stage 0), deepspeed/runtime/utils.py (all_gather_dp_groups); for
// stage 3 also stage3.py and partitioned_param_coordinator.py of 00a31c99.
Dialect deepspeed_dialect();

// Hugging Face's Trainer: what its TrainingArguments make of DistributedDataParallel, or the
// DeepSpeed configuration inside them. Keys that are about anything else are passed over.
// Source: transformers/trainer.py (the keyword arguments for DistributedDataParallel),
// transformers PR #14756 (ddp_bucket_cap_mb).
Dialect hf_trainer_dialect();

// PyTorch's fully sharded data parallelism, 1 and 2: each wrapped module is a unit whose parameters
// are all-gathered and whose gradients are reduce-scattered together. `units` names the wrapped
// modules by the names of their parameters, "model.layers.*" for each of a list; what is in none is
// the root's. Source: torch/distributed/fsdp (FullyShardedDataParallel) and
// torch/distributed/fsdp/_fully_shard.
Dialect fsdp_dialect();

// torchft's LocalSGD and DiLoCo (torchft/local_sgd.py) by the arguments of their constructors:
// sync_every, fragment_sync_delay, fragment_update_alpha, should_quantize, use_bucketization and
// bucket_cap_mb, with num_fragments for the modules in model_fragments, outer_optimizer for
// torch.optim.SGD's lr, momentum and nesterov, and group_world_size, the ranks of a replica group.
// diloco: MaxText's keys for the same (src/maxtext/trainers/diloco, configs/types.py).
Dialect torchft_dialect();
Dialect diloco_dialect();

// PyTorch DistributedDataParallel: gradients in buckets of at least bucket_cap_mb.
Dialect pytorch_ddp_dialect();

// What a script writes for a configuration, on one line.
std::string ddp_code(const Json& config);
std::string fsdp_code(const Json& config);

}  // namespace syncline::dialect
