// PyTorch DistributedDataParallel: gradients in buckets of at least bucket_cap_mb.
#pragma once

#include <string>

#include "core/dialect/dialect.h"

namespace syncline::dialect {

Dialect pytorch_ddp_dialect();

// What a script writes for a configuration, on one line.
std::string ddp_code(const Json& config);

}  // namespace syncline::dialect
