// The order in which a workload lists its gradients, judged by their names and shapes.
#pragma once

#include "core/job.h"

namespace syncline::measure {

// Tells whether the gradients look listed first layer first, as torch's named_parameters() gives
// them, where a workload lists them as they become ready: last layer first. Two things speak for
// it:
//
//   numbers  "h.0.mlp.weight" before "h.1.mlp.weight": among names that differ in numbers alone,
//            far more rise than fall. Gradients numbered by whoever listed them ("g0", "g1") say
//            nothing: the names must be those of parameters, or the shapes must follow each other
//            as in forward order (outputs of a layer are the next one's inputs);
//   ends     an embedding or a stem first and a classifier or a head last.
//
// It is a guess that rather keeps silent.
bool listed_forward(const Workload& workload);

}  // namespace syncline::measure
