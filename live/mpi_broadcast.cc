#include "live/mpi_broadcast.h"

#include <dlfcn.h>

#include "core/error.h"
#include "core/installed.h"
#include "live/mpi/broadcast.h"

namespace syncline::live {
namespace {

// SimGrid brings MPI functions of its own, which abort outside its simulation: what this library
// calls is sought in MPI's first. The sanitizers do not allow that; built with them, the program
// is linked to MPI ahead of SimGrid.
#ifdef SYNCLINE_SANITIZED
constexpr int kHow = RTLD_NOW | RTLD_LOCAL;
#else
constexpr int kHow = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
#endif

constexpr const char* kInstead =
    ": name a file that all ranks can read, in which rank 0 writes its address, with --meet FILE";

SynclineMpiFromFirst* load() {
  const std::string name = own_library("libsyncline_mpi.so").string();
  if (name.empty()) {
    throw MachineError("the ranks were launched by mpirun, but this program has no MPI: " +
                       ("libsyncline_mpi.so is not with it" + std::string(kInstead)));
  }
  void* library = dlopen(name.c_str(), kHow);
  if (library == nullptr) {
    throw MachineError("the ranks were launched by mpirun, but MPI cannot be loaded: " +
                       std::string(dlerror()) + kInstead);
  }
  auto* found = reinterpret_cast<SynclineMpiFromFirst*>(dlsym(library, "syncline_mpi_from_first"));
  if (found == nullptr) throw MachineError(name + ": " + dlerror());
  return found;
}

}  // namespace

std::string mpi_from_first(const std::string& mine) {
  std::string text = mine;
  std::string failure;
  load()(text, failure);
  if (!failure.empty()) throw MachineError(failure);
  return text;
}

}  // namespace syncline::live
