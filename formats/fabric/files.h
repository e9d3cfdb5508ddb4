// Fabrics in files of operators' own tools: Slurm's topology.conf (topology/tree), the output of
// ibnetdiscover (infiniband-diags), SimGrid's platform files. Speeds are bytes of data per second
// in each direction. Readers throw InputError; the first two name the line.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/fabric/topology.h"

namespace syncline::fabric {

// Calls `add` for each line. Rethrows its errors with the line's number.
void for_each_line(const std::string& text, const std::function<void(const std::string&)>& add);

// Returns gpu01, gpu02, gpu03, gpu07 for "gpu[01-03,07]"; commas separate. Throws InputError.
std::vector<std::string> hosts_listed(std::string_view list);

// Returns a tree of switches with nodes below its leaves. Speeds are not in the file: the bandwidth
// of a switch's uplink is that of the nodes below it / oversubscription.
Topology slurm_fabric(const std::string& text, BytesPerSecond node_port, double oversubscription);

// Returns switches, cables by width and speed, and hosts by the first word of their adapters'
// descriptions. Its nodes are the hosts with `ports` ports, by name; each port is a lane, in the
// order of adapters. `reached`: share of the cables' rated bandwidth. A port slower than
// `node_port` is a link of its own.
Topology ibnetdiscover_fabric(const std::string& text, int ports, BytesPerSecond node_port,
                              double reached);

// Returns a cluster that is a FAT_TREE, a TORUS or a DRAGONFLY, or a zone of cables. Messages call
// the file `name`.
Topology simgrid_fabric(const std::string& name, const std::string& text, double reached);

}  // namespace syncline::fabric
