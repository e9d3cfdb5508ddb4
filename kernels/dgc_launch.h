// The update launch, which the exact and the sampled selection share.
#pragma once

#include "kernels/dgc_step.h"

namespace syncline::kernels {

// Momentum correction and accumulation; with `select` also the first round of the exact selection.
Status launch_dgc_update(const DgcPlan& plan, const DgcStep& step, bool select,
                         cudaStream_t stream);

}  // namespace syncline::kernels
