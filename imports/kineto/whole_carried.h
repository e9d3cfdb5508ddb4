// The gradients that each exchange of a step carries.
#pragma once

#include <cstddef>
#include <vector>

#include "imports/kineto/whole_rank.h"

namespace syncline::job::kineto {

// Gradients of a stage in the order of its backward passes.
struct LaidGradients {
  std::vector<int> chunks;           // chunk of the model, by backward pass
  std::vector<Nanoseconds> arrived;  // by gradient, in its chunk's last pass
};

// Returns the role of an exchange's group.
Role role_of(const ObservedExchange& exchange, const std::vector<RankGroup>& groups);

// Sets the gradients that each exchange carries; `exchanges` are places in Step::exchanges.
void find_carried(const std::vector<std::size_t>& exchanges, const LaidGradients& laid,
                  const std::vector<RankGroup>& groups, WholeStep& whole);

}  // namespace syncline::job::kineto
