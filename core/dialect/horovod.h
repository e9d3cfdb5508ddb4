// Horovod's environment variables (numbers, or text as in a shell), and `compression` of
// DistributedOptimizer: "none" or "fp16".
#pragma once

#include "core/dialect/dialect.h"

namespace syncline::dialect {

Dialect horovod_dialect();

}  // namespace syncline::dialect
