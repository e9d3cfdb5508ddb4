// A node that no list has: GPUs of a known kind and the port that leads out of it, in words or as
// NCCL found them.
#pragma once

#include <string>

#include "core/hardware/device.h"

namespace syncline::job {

// `gpu`: a name of core/hardware's; `net`: "25gbit", "8x400gbit", "4x100gbit:efa"; empty where
// there is one node. Without a fabric's name a port of up to 50 Gbit/s is Ethernet with TCP, and of
// others nothing is known. GPUs are joined as in their usual node, cards by PCIe, those of GeForce
// through host memory. Throws InputError by the options' names.
hardware::KnownNode own_node(const std::string& gpu, int gpus, const std::string& net);

// Of NCCL's topology file (NCCL_TOPO_DUMP_FILE writes it, NCCL_TOPO_FILE reads it): the GPUs,
// NVLink or PCIe between them as rated, and the fastest NICs. It does not name the GPUs: without
// `gpu` they are the only known ones of their compute capability. `net` in place of NICs. Throws
// InputError.
hardware::KnownNode nccl_node(const std::string& file, std::string gpu, std::string net);

}  // namespace syncline::job
