// Slurm's topology.conf (topology/tree) as a fabric: a tree of switches with nodes below its
// leaves. Speeds are not in it: a switch's way up carries what the nodes below it send /
// oversubscription. Throws InputError that names the line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/fabric/topology.h"

namespace syncline::fabric {

// "gpu[01-03,07]" -> gpu01, gpu02, gpu03, gpu07; several apart by commas. Throws InputError.
std::vector<std::string> hosts_listed(std::string_view list);

Topology slurm_fabric(const std::string& text, BytesPerSecond node_port, double oversubscription);

}  // namespace syncline::fabric
