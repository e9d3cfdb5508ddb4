#include "core/error.h"
#include "live/meeting.h"

namespace syncline {

std::string mpi_from_first(const std::string&) {
  throw MachineError(
      "the ranks were launched by mpirun, but this program was built without MPI: let them meet "
      "in a file that all see, with --meet FILE");
}

}  // namespace syncline
