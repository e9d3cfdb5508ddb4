// Any bytes are a network of InfiniBand whose nodes have ways to each other or none, or an
// InputError.
#include "formats/fabric/files.h"

#include <cstdlib>
#include <string>

#include "tests/fuzz/fuzz_target.h"

SYNCLINE_FUZZ_TARGET(ibnetdiscover, bytes) {
  namespace fabric = syncline::fabric;
  const fabric::Topology read =
      fabric::merge_pools(fabric::ibnetdiscover_fabric(std::string(bytes), 2, 50e9, 1));
  if (2 * read.names.size() != read.plugs.size()) std::abort();
  fabric::Ways ways(read);
  for (int host = 1; host < std::min(2 * read.all_nodes(), 32); ++host) {
    std::vector<int> links;
    ways.find(0, host, 0, links);
    if (links.size() > 2 * read.switches.size()) std::abort();
  }
}
