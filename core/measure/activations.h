// What a rank keeps of the forward pass for the backward pass, at a step's fullest moment: the
// values that forward operators write and backward operators read, of the micro-batches that are
// under way on its stage (plan::passes_of). Recomputation as Megatron has it (Korthikanti et al.
// 2022, 5): selective keeps nothing of attention's scores, full only what goes into each layer.
#pragma once

#include "core/scenario/workload.h"

namespace syncline::measure {

// Of a rank of that stage, in bytes. Requires the workload's operators.
double activations_of(const Workload& workload, int stage);

}  // namespace syncline::measure
