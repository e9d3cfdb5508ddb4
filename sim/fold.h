// Folding: thousands of ranks have few kinds of links. Links that carry the same kinds of flows are
// merged into one link of their total capacity, and flows of one kind into one flow of their total
// bytes.
#pragma once

#include "sim/flows.h"

namespace syncline::sim {

// Each payload as a plan over the merged links.
FlowSet folded(const Traffic& traffic);

}  // namespace syncline::sim
