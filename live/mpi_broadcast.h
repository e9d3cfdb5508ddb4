// MPI, loaded when ranks were launched by it: it only tells them where rank 0 listens.
#pragma once

#include <string>

namespace syncline::live {

// Rank 0's text on every rank. Throws MachineError where MPI fails, and where it is not there: this
// program was built without it, or its libraries are not on this machine.
std::string mpi_from_first(const std::string& mine);

}  // namespace syncline::live
