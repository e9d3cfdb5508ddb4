// Folding: thousands of ranks have few kinds of links. Links that carry the same kinds of flows are
// merged into one link of their total capacity, and flows of one kind into one flow of their total
// bytes. Where every link of a kind carries equally many flows of each kind (an equitable
// partition, found by colour refinement), the time at which a stage's last flow ends is unchanged
// as long as flows of different kinds do not compete unevenly for one link; a test pins the
// difference for every algorithm.
#pragma once

#include "sim/flows.h"

namespace syncline::sim {

// Each payload as a plan over the merged links.
FlowSet folded(const Traffic& traffic);

}  // namespace syncline::sim
