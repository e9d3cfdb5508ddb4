// Megatron-Core's DistributedDataParallel and its distributed optimizer, by the flags of its
// pretraining scripts without the leading dashes ("ddp-bucket-size": 40000000). Source:
// NVIDIA/Megatron-LM d98e8a64, megatron/core/distributed/param_and_grad_buffer.py,
// megatron/training/training.py (resolve_ddp_bucket_size) and arguments.py.
#pragma once

#include <span>
#include <vector>

#include "formats/dialect/dialect.h"

namespace syncline::dialect {

Dialect megatron_dialect();

// A size of the layout: Megatron's flag and the key of workload.parallel.
struct LayoutFlag {
  const char* flag;
  const char* key;
  int Parallel::*size;
};
std::span<const LayoutFlag> megatron_layout();

// Returns the layers of each part by pipeline-model-parallel-layout, "Et*3|(tt|)*29,t|L". Throws
// InputError for letters that make no layout. Requires that flag.
std::vector<int> megatron_layers(Reader& flags);

}  // namespace syncline::dialect
