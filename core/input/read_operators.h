// A workload's "operators": an architecture whose operators are generated, or an explicit list.
#pragma once

#include "core/json/reader.h"
#include "core/scenario/workload.h"

namespace syncline::input {

// Fills in workload.operators; with an architecture also tensors and buffers, where the workload
// names none (`given`: it does). Given tensors must be the architecture's gradients in its order,
// size by size: then their names, dtypes and times stand. Requires name, batch and, if given,
// tensors.
void read_operators(Reader reader, Workload& workload, bool given);

}  // namespace syncline::input
