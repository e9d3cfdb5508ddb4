// The fetches of a step (core/communication.h), pass by pass.
#pragma once

#include <cstddef>
#include <vector>

#include "core/communication.h"

namespace syncline::plan {

// Fetches of one pass of a micro-batch, as indices into Communication::fetches. Both lists are by
// the tensor before whose layer the pass launches or awaits the fetch (Moment::tensor).
struct FetchesOfPass {
  std::vector<std::vector<std::size_t>> asked;
  std::vector<std::vector<std::size_t>> needed;

  // True if the pass launches or awaits a fetch before that tensor's layer.
  bool any(std::size_t tensor) const { return !asked[tensor].empty() || !needed[tensor].empty(); }
};
FetchesOfPass fetches_of_pass(const Communication& communication, std::size_t tensors,
                              bool backward, bool first_micro_batch);

}  // namespace syncline::plan
