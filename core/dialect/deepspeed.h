// DeepSpeed's configuration file: ZeRO stages 0 to 3.
// Source: deepspeedai/DeepSpeed edaa7221, deepspeed/runtime/zero/stage_1_and_2.py and config.py,
// deepspeed/runtime/engine.py (stage 0), deepspeed/runtime/utils.py (all_gather_dp_groups); for
// stage 3 also stage3.py and partitioned_param_coordinator.py of 00a31c99.
#pragma once

#include "core/dialect/dialect.h"

namespace syncline::dialect {

Dialect deepspeed_dialect();

}  // namespace syncline::dialect
