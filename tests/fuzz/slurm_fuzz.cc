// Any bytes are a topology.conf whose nodes all have ways to each other or none, or an InputError.
#include "formats/fabric/files.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "tests/fuzz/fuzz_target.h"

SYNCLINE_FUZZ_TARGET(slurm, bytes) {
  namespace fabric = syncline::fabric;
  const fabric::Topology read = fabric::slurm_fabric(std::string(bytes), 1e9, 2);
  if (read.names.size() != read.plugs.size()) std::abort();
  fabric::Ways ways(read);
  for (std::size_t node = 1; node < std::min<std::size_t>(read.names.size(), 32); ++node) {
    std::vector<int> links;
    ways.find(0, static_cast<int>(node), 0, links);
    if (links.size() > 2 * read.switches.size()) std::abort();
  }
}
