// This process's rank in a live run, from a launcher's environment variables: its rank, the number
// of ranks, and how they find each other. Launchers: torchrun and `syncline lab`, mpirun
// (OMPI_COMM_WORLD_*, PMI_*), srun (SLURM_*), our own --ranks (SYNCLINE_*). SYNCLINE_TOKEN applies
// to all.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace syncline::live {

struct RankEnvironment {
  int rank = 0;
  int ranks = 1;
  std::string launcher;  // "torchrun", "mpirun", "srun", "syncline"
  // How the others find rank 0: it listens at an address that all ranks know; it publishes its
  // address over MPI; or in a file that all ranks can read.
  enum class Rendezvous { kAddress, kMpi, kFile };
  Rendezvous rendezvous = Rendezvous::kFile;
  std::string host;  // of rank 0, for kAddress
  int port = 0;
  int listener = -1;  // rank 0's listening descriptor; -1: none
  std::string file;   // for kFile
  // Secret of the run's ranks (SYNCLINE_TOKEN); empty: none is given.
  std::string token;
  bool one_machine = false;  // all ranks run on this one
  std::string interface;     // to be reached by (GLOO_SOCKET_IFNAME); empty: any
  std::string run_id;        // torchrun's
};

// Returns a variable's value, or nullopt if it is not set.
using EnvironmentVariables = std::function<std::optional<std::string>(const std::string&)>;
EnvironmentVariables process_environment();

// Returns nullopt if no launcher has set its variables. `file`: the file for the rendezvous, before
// the launcher's; empty: the launcher's choice, or else a file in the working directory, named
// after the job. Throws InputError for an invalid value.
std::optional<RankEnvironment> read_rank_environment(const EnvironmentVariables& variables,
                                                     const std::string& file = "");

// Returns a rank as messages of a live run name it: "rank 2".
std::string rank_text(int rank);
// Returns the ranks without a flag: "rank 2", "ranks 1, 3".
std::string missing_ranks_text(const std::vector<char>& joined);
// Returns "60 s", "0.3 s".
std::string limit_text(std::chrono::milliseconds time);
// Returns the message to the second process of a rank: the first one goes on.
std::string started_twice_text(int rank);

}  // namespace syncline::live
