// Ranks of a run without a launcher: processes of this machine that run one command, each with its
// rank in environment variables (live/rank_environment.h).
#pragma once

#include <string>
#include <vector>

#include "live/processes.h"

namespace syncline::live {

// Returns one command per rank, for run_ranks(). `meet`: the file for rank 0's address; empty: rank
// 0 gets a listening socket, and all know its port. The environment holds the run's token. Our
// output is rank 0's; that of other ranks is dropped.
std::vector<RankCommand> local_ranks(const std::vector<std::string>& command, int ranks,
                                     const std::string& meet = "");

// Returns this process's own command line. Throws MachineError.
std::vector<std::string> own_command();

}  // namespace syncline::live
