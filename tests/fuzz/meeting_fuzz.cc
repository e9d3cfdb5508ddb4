// A file in which rank 0 is said to have left its address.
#include "live/rendezvous.h"
#include "tests/fuzz/fuzz_target.h"

SYNCLINE_FUZZ_TARGET(meeting, bytes) {
  using namespace syncline;
  live::RankEnvironment place;
  place.rank = 1;
  place.ranks = 2;
  place.file = fuzz::path_of(bytes);
  place.token = "known";  // or a file that others may read is refused for that alone
  live::FirstRank first(place);
  try {
    const auto found = first.now();
    if (found && (found->port < 1 || found->port > 65535 || found->host.empty())) std::abort();
  } catch (const MachineError& error) {
    throw InputError(error.what());
  }
}
