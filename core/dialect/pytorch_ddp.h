// PyTorch DistributedDataParallel: gradients in buckets of at least bucket_cap_mb.
#pragma once

#include "core/dialect/dialect.h"

namespace syncline::dialect {

Dialect pytorch_ddp_dialect();

}  // namespace syncline::dialect
