// What a launcher told this process in environment variables: which rank of a live run it is, of
// how many, and how the ranks find each other. Read are those of torchrun and `syncline lab`,
// mpirun (OMPI_COMM_WORLD_*, PMI_*), srun (SLURM_*), our own --ranks (SYNCLINE_*), and
// SYNCLINE_TOKEN.
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
  // Where rank 0 publishes its address: nowhere, it listens at one that all ranks know; over MPI;
  // or in a file that all ranks can read.
  enum class Rendezvous { kAddress, kMpi, kFile };
  Rendezvous rendezvous = Rendezvous::kFile;
  std::string host;  // kAddress: of rank 0
  int port = 0;
  int listener = -1;  // a descriptor that listens there for rank 0; -1: there is none
  std::string file;   // kFile
  // What all ranks of the run know and nobody else (SYNCLINE_TOKEN); empty: none is given.
  std::string token;
  bool one_machine = false;  // all ranks run on this one
  std::string interface;     // to be reached by (GLOO_SOCKET_IFNAME); empty: any
  std::string run_id;        // torchrun's
};

// Returns a variable's value, or nothing where it is not set.
using EnvironmentVariables = std::function<std::optional<std::string>(const std::string&)>;
EnvironmentVariables process_environment();

// Nothing where no launcher has set its variables. `file`, where it is not empty, is the file for
// the rendezvous, whatever the launcher says; empty: what the launcher says, or else a file in the
// working directory, named after the job. Throws InputError for a variable whose value is not
// valid.
std::optional<RankEnvironment> read_rank_environment(const EnvironmentVariables& variables,
                                                     const std::string& file = "");

// Ranks and times as the messages of a live run name them: "rank 2".
std::string rank_text(int rank);
// Those whose flag is not set: "rank 2", "ranks 1, 3".
std::string missing_ranks_text(const std::vector<char>& joined);
// "60 s", "0.3 s".
std::string limit_text(std::chrono::milliseconds time);
// To the second process of a rank: the first one goes on.
std::string started_twice_text(int rank);

}  // namespace syncline::live
