// The operators of a workload, read from its JSON object.
#pragma once

#include "catalogue/architectures/architecture.h"
#include "core/job.h"
#include "formats/json/reader.h"

namespace syncline::input {

// Reads a workload's "operators": an architecture whose operators are generated, or an explicit
// list. Fills in workload.operators; with an architecture also tensors and buffers, where the
// workload names none (`given`: it does). Given tensors must be the architecture's gradients in its
// order, size by size: then their names, dtypes and times stand. Requires name, batch and, if
// given, tensors. Returns what an architecture was generated to, without its operators and tensors.
operators::Generated read_operators(Reader reader, Workload& workload, bool given);

}  // namespace syncline::input
