// Megatron-Core's DistributedDataParallel and its distributed optimizer, by the flags of its
// pretraining scripts without the dashes in front ("ddp-bucket-size": 40000000).
// Source: NVIDIA/Megatron-LM d98e8a64, megatron/core/distributed/param_and_grad_buffer.py,
// megatron/training/training.py (resolve_ddp_bucket_size) and arguments.py.
#pragma once

#include "core/dialect/dialect.h"

namespace syncline::dialect {

Dialect megatron_dialect();

}  // namespace syncline::dialect
