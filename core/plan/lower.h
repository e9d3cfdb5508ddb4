// Lowering: the one expansion of a plan's collective into transfers between world ranks.
#pragma once

#include "core/collective/schedule.h"
#include "core/plan/plan.h"

namespace syncline::plan {

// Rounds of all groups side by side: round i holds round i of every group. Transfers name world
// ranks; elements count inside the group's payload.
collective::Schedule lower(const collective::Collective& collective);

}  // namespace syncline::plan
