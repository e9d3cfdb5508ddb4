// A connection between every two ranks, for what moves gradients and knows no strangers itself.
#pragma once

#include <string>
#include <vector>

#include "live/control_channel.h"

namespace syncline::live {

// All ranks call this together. Gives this rank's connections, by rank, none for itself; each end
// has proved to the other that it is that rank of this run, and nothing else has been said on them.
// `purpose`: the same on all ranks, in words. Throws MachineError: PeerError where a rank cannot be
// reached within the channel's time limit, and what the channel knows of ranks that are gone.
std::vector<Socket> connect_pairs(ControlChannel& channel, const std::string& purpose);

}  // namespace syncline::live
