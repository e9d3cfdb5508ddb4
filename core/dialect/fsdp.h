// PyTorch's fully sharded data parallelism, 1 and 2: each wrapped module is a unit whose parameters
// are all-gathered and whose gradients are reduce-scattered together. `units` names the wrapped
// modules by the names of their parameters, "model.layers.*" for each of a list; what is in none is
// the root's. Source: torch/distributed/fsdp (FullyShardedDataParallel) and
// torch/distributed/fsdp/_fully_shard.
#pragma once

#include "core/dialect/dialect.h"

namespace syncline::dialect {

Dialect fsdp_dialect();

}  // namespace syncline::dialect
