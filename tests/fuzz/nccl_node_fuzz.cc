// Any bytes are NCCL's topology of a node that can be priced, or an InputError.
#include <cstdlib>
#include <string>

#include "imports/init.h"
#include "tests/fuzz/fuzz_target.h"

SYNCLINE_FUZZ_TARGET(nccl_node, bytes) {
  using namespace syncline;
  const hardware::KnownNode node = job::nccl_node(fuzz::path_of(bytes), "a100-sxm-80gb", "");
  if (node.gpus < 1 || !(node.inside.bandwidth > 0)) std::abort();
}
