// Any bytes are a platform file whose nodes have ways to each other or none, or an InputError.
#include <algorithm>
#include <cstdlib>
#include <string>

#include "formats/fabric/files.h"
#include "tests/fuzz/fuzz_target.h"

SYNCLINE_FUZZ_TARGET(simgrid, bytes) {
  namespace fabric = syncline::fabric;
  const fabric::Topology read =
      fabric::merge_pools(fabric::simgrid_fabric("p.xml", std::string(bytes), 1));
  fabric::Ways ways(read);
  for (int host = 1; host < std::min(read.all_nodes(), 32); ++host) {
    std::vector<int> links;
    ways.find(0, host, 0, links);
    if (links.size() > read.switches.size()) std::abort();
  }
}
