// Fabrics as operators' own tools write them: Slurm's topology.conf (topology/tree), what
// ibnetdiscover (infiniband-diags) prints, SimGrid's platform files. Bytes per second of data, each
// direction. Throws InputError, of the first two with the line.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/fabric/topology.h"

namespace syncline::fabric {

// Line by line; what `add` refuses is thrown with the line's number.
void for_each_line(const std::string& text, const std::function<void(const std::string&)>& add);

// "gpu[01-03,07]" -> gpu01, gpu02, gpu03, gpu07; several apart by commas. Throws InputError.
std::vector<std::string> hosts_listed(std::string_view list);

// A tree of switches with nodes below its leaves. Speeds are not in the file: a switch's way up
// carries what the nodes below it send / oversubscription.
Topology slurm_fabric(const std::string& text, BytesPerSecond node_port, double oversubscription);

// Switches, cables by width and speed, and hosts by the first word of their adapters' descriptions.
// Its nodes are the hosts with so many ports as a job's node has, by name; each port a lane, in the
// order of adapters. `reached`: share of what cables promise. A port of less than `node_port` is a
// link of its own.
Topology ibnetdiscover_fabric(const std::string& text, int ports, BytesPerSecond node_port,
                              double reached);

// A cluster that is a FAT_TREE, a TORUS or a DRAGONFLY, or a zone of cables; `name` stands for the
// file in messages.
Topology simgrid_fabric(const std::string& name, const std::string& text, double reached);

}  // namespace syncline::fabric
