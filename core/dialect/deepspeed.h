// DeepSpeed's configuration file: ZeRO stages 0 to 2. Stage 3 gathers parameters module by module
// in both passes and is refused.
// Source: deepspeedai/DeepSpeed edaa7221, deepspeed/runtime/zero/stage_1_and_2.py and config.py,
// deepspeed/runtime/engine.py (stage 0), deepspeed/runtime/utils.py (all_gather_dp_groups).
#pragma once

#include "core/dialect/dialect.h"

namespace syncline::dialect {

Dialect deepspeed_dialect();

}  // namespace syncline::dialect
