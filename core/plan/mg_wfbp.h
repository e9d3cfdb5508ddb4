// MG-WFBP's merging of gradients (Shi, Chu and Li, INFOCOM 2019), by the rule of its published
// code: walking through the gradients as they become ready, the open group takes the next one if
// that is ready before the group's exchange would end and either the exchange could not have begun
// by then or waiting for it costs less than the start-up that it saves. Greedy: waits below the
// start-up add up, and the result is often not the best.
#pragma once

#include <functional>
#include <vector>

#include "core/units.h"

namespace syncline::plan {

// Groups of indices into `ready` and `bytes`, which are in the order of readiness. `cost` returns
// the time of one exchange of that many bytes, `start_up` its part that does not depend on the
// bytes. An open group of fewer than `least` bytes takes the next gradient in any case.
std::vector<std::vector<int>> mg_wfbp_groups(const std::vector<Seconds>& ready,
                                             const std::vector<Bytes>& bytes, Seconds start_up,
                                             const std::function<Seconds(Bytes)>& cost,
                                             Bytes least = 0);

}  // namespace syncline::plan
