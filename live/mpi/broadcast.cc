// MPI ends once the ranks know rank 0's address. If a rank dies later, the control channel finds
// and names it, not MPI.
#include "live/mpi/broadcast.h"

#include <mpi.h>

namespace {

// Returns true if a call succeeded; else puts its error into `failure`.
bool done(int code, const char* call, std::string& failure) {
  if (code == MPI_SUCCESS) return true;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  failure = std::string(call) + ": " + text;
  return false;
}

}  // namespace

void syncline_mpi_from_first(std::string& text, std::string& failure) {
  if (!done(MPI_Init(nullptr, nullptr), "MPI_Init", failure)) return;
  int length = static_cast<int>(text.size());
  if (!done(MPI_Bcast(&length, 1, MPI_INT, 0, MPI_COMM_WORLD), "MPI_Bcast", failure)) return;
  text.resize(static_cast<std::size_t>(length));
  if (!done(MPI_Bcast(text.data(), length, MPI_CHAR, 0, MPI_COMM_WORLD), "MPI_Bcast", failure)) {
    return;
  }
  done(MPI_Finalize(), "MPI_Finalize", failure);
}
