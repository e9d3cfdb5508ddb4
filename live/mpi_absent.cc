#include "core/error.h"
#include "live/mpi_broadcast.h"

namespace syncline::live {

std::string mpi_from_first(const std::string&) {
  throw MachineError(
      "the ranks were launched by mpirun, but this program was built without MPI: name a file that "
      "all ranks can read, in which rank 0 writes its address, with --meet FILE");
}

}  // namespace syncline::live
