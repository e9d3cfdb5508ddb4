// Detects the order of a workload's list of gradients, from their names and shapes.
#pragma once

#include "core/job.h"

namespace syncline::measure {

// Returns true if the gradients seem listed first layer first, as by torch's named_parameters(). A
// workload should list them as they become ready: last layer first. Two signs count:
//
//   numbers  "h.0.mlp.weight" before "h.1.mlp.weight": among names that differ only in numbers,
//            far more rise than fall. Numbers given by the list's author ("g0", "g1") do not
//            count: the names must be those of parameters, or the shapes must follow each other
//            as in forward order (outputs of a layer are the next one's inputs);
//   ends     an embedding or a stem first and a classifier or a head last.
//
// In doubt, returns false.
bool is_forward_order(const Workload& workload);

}  // namespace syncline::measure
