// Where this process stands among the ranks of a live run, and how they find each other. Read from
// what its launcher left in the environment:
//   torchrun, `syncline lab`  RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT
//   mpirun                    OMPI_COMM_WORLD_RANK and _SIZE, or PMI_RANK and PMI_SIZE
//   srun                      SLURM_PROCID, SLURM_NTASKS
//   --ranks N                 SYNCLINE_RANK, SYNCLINE_RANKS, SYNCLINE_MEET, set by our own launcher
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace syncline {

struct RankPlace {
  int rank = 0;
  int ranks = 1;
  std::string launcher;  // "torchrun", "mpirun", "srun", "syncline"
  // How ranks find rank 0: at an address that all know, over MPI, or in a file that all see.
  enum class Meet { kAddress, kMpi, kFile };
  Meet meet = Meet::kFile;
  std::string host;  // kAddress: of rank 0
  int port = 0;
  std::string file;  // kFile
};

// Gives a variable's value, or nothing.
using Environment = std::function<std::optional<std::string>(const std::string&)>;
Environment process_environment();

// Nothing where no launcher left a trace. `file` stands for the one that ranks without a launcher's
// address meet in; empty: one in the working directory, named after the job. Throws InputError for
// variables that cannot be.
std::optional<RankPlace> place_in(const Environment& environment, const std::string& file = "");

}  // namespace syncline
