// The operators of a workload, read from its JSON object.
#pragma once

#include "catalogue/architectures/architecture.h"
#include "core/job.h"
#include "formats/json/reader.h"

namespace syncline::input {

// Reads a workload's "operators": an architecture that generates operators, or an explicit list.
// Sets workload.operators; for an architecture also tensors and buffers, unless the workload has
// them (`given`). Given tensors must be the architecture's gradients in its order and sizes; they
// keep their names, dtypes and times. Requires name, batch and, if given, tensors. Returns the rest
// of the generated model.
operators::Generated read_operators(Reader reader, Workload& workload, bool given);

}  // namespace syncline::input
