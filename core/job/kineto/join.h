// Several ranks of one job: put in order, and each collective's own time told from waiting.
#pragma once

#include <vector>

#include "core/job/kineto/rank.h"

namespace syncline::job::kineto {

// Throws InputError for ranks that stand there twice or belong to jobs of different sizes.
// Requires at least one.
Observed join(std::vector<RankRead> ranks);

}  // namespace syncline::job::kineto
