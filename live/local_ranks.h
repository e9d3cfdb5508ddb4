// The ranks of a run that no launcher starts: processes of this machine that run one command, each
// with an environment that says which rank it is (live/rank_environment.h).
#pragma once

#include <string>
#include <vector>

#include "live/processes.h"

namespace syncline::live {

// One command a rank, for run_ranks(). `meet`: the file in which rank 0 publishes its address;
// empty: rank 0 is given a socket that listens already, and all know its port. The run's token goes
// with the environment. Rank 0's output goes to ours, that of the others nowhere.
std::vector<RankCommand> local_ranks(const std::vector<std::string>& command, int ranks,
                                     const std::string& meet = "");

// This process's own command line. Throws MachineError.
std::vector<std::string> own_command();

}  // namespace syncline::live
