// Any bytes are a list of hosts as Slurm writes it, of no more names and letters than a fabric has,
// or an InputError.
#include <cstdlib>
#include <string>

#include "core/fabric/kinds.h"
#include "formats/fabric/files.h"
#include "formats/text/limits.h"
#include "tests/fuzz/fuzz_target.h"

SYNCLINE_FUZZ_TARGET(hosts, bytes) {
  namespace fabric = syncline::fabric;
  const std::vector<std::string> names = fabric::hosts_listed(bytes);
  if (names.size() > fabric::at(fabric::kMaxNodes)) std::abort();
  for (const std::string& name : names) {
    if (name.size() > syncline::kLongestName) std::abort();
  }
}
