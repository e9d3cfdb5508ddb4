// MPI, where this program was built with it (mpi_present.cc; otherwise mpi_absent.cc): it only
// tells the ranks where rank 0 listens.
#pragma once

#include <string>

namespace syncline::live {

// Rank 0's text on every rank. Throws MachineError where MPI fails, and where this program was
// built without it.
std::string mpi_from_first(const std::string& mine);

}  // namespace syncline::live
