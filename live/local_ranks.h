// The ranks of a run that no launcher starts: processes of this machine that run one command, each
// with an environment that says which rank it is (live/rank_environment.h).
#pragma once

#include <string>
#include <vector>

#include "live/processes.h"
#include "live/socket.h"

namespace syncline::live {

// One command a rank, for run_ranks(). `file`: in which rank 0 publishes its address; the run's
// token goes with the environment. Rank 0's output goes to ours, that of the others nowhere.
std::vector<RankCommand> local_ranks(const std::vector<std::string>& command, int ranks,
                                     const std::string& file);

// This process's own command line. Throws MachineError.
std::vector<std::string> own_command();

// A temporary folder for that file. It is removed, with the file, when this ends; one whose
// launcher was killed when the next begins, which finds that nobody holds its lock (flock).
class RendezvousFolder {
 public:
  RendezvousFolder();
  ~RendezvousFolder();
  RendezvousFolder(const RendezvousFolder&) = delete;
  RendezvousFolder& operator=(const RendezvousFolder&) = delete;
  std::string file() const { return folder_ + "/meet"; }

 private:
  std::string folder_;
  Socket lock_;  // the folder, locked
};

}  // namespace syncline::live
