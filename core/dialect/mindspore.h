// MindSpore 2.2: parallel_mode and comm_fusion of set_auto_parallel_context, and the fusion ids of
// Cell.set_comm_fusion ("set_comm_fusion": {"layer1": 1, "head.bias": 0}, in the order of the
// calls: a later one overwrites an earlier one; "" is the whole network).
#pragma once

#include "core/dialect/dialect.h"

namespace syncline::dialect {

Dialect mindspore_dialect();

}  // namespace syncline::dialect
