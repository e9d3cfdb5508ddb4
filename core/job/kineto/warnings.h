// What a reader of the imported job must know before believing it.
#pragma once

#include <string>
#include <vector>

#include "core/job/kineto/rank.h"

namespace syncline::job::kineto {

// Sets `observed.warnings`, the gravest first, `notes` of the reading behind them. `world_told`: a
// file names the world size; `agreed`: the ranks agree on what their collectives carry.
void warn(Observed& observed, const RankRead& first, bool world_told, bool agreed,
          std::vector<std::string> notes);

}  // namespace syncline::job::kineto
