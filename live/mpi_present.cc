// MPI ends once the ranks know where rank 0 listens, so that a rank that dies later is found and
// named by the control channel and not by MPI.
#include <mpi.h>

#include "core/error.h"
#include "live/mpi_broadcast.h"

namespace syncline::live {
namespace {

void check(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw MachineError(std::string(call) + ": " + text);
}

}  // namespace

std::string mpi_from_first(const std::string& mine) {
  check(MPI_Init(nullptr, nullptr), "MPI_Init");
  int length = static_cast<int>(mine.size());
  check(MPI_Bcast(&length, 1, MPI_INT, 0, MPI_COMM_WORLD), "MPI_Bcast");
  std::string text = mine;
  text.resize(static_cast<std::size_t>(length));
  check(MPI_Bcast(text.data(), length, MPI_CHAR, 0, MPI_COMM_WORLD), "MPI_Bcast");
  check(MPI_Finalize(), "MPI_Finalize");
  return text;
}

}  // namespace syncline::live
