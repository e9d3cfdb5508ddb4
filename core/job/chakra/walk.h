// The nodes of a Chakra trace in time: each begins when all that it depends on has ended and its
// lane (a host's thread, a device's stream) is free; who is ready first is first. Collectives take
// the duration that the trace gives them, nothing where it gives none. As ASTRA-sim's own feeder
// does it, but for its limit of one node at a time on host and device each.
#pragma once

#include <string>
#include <vector>

#include "core/job/chakra/nodes.h"

namespace syncline::job::chakra {

struct Span {
  Seconds ready = 0;  // all that it depends on has ended
  Seconds begin = 0;
  Seconds end = 0;
};

// One a node, in the same order. Dependencies on nodes that the trace does not hold count as met
// (converters drop nodes). Throws InputError, naming `name`, where they form a circle, or where two
// nodes have one id.
std::vector<Span> walk(const std::string& name, const std::vector<Node>& nodes);

}  // namespace syncline::job::chakra
