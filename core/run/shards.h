// Independent pieces of work spread over machines, under mpirun or as a Slurm array: each rank does
// every size-th piece and leaves its results in a shared folder; rank 0 waits for all of them and
// returns the results in order, the same bytes as from one process. The folder is all that the
// ranks share; nothing links with MPI.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "core/run/jobs.h"

namespace syncline::run {

// This process's place among the ranks, and a name that all ranks of one launch share and no other
// launch has.
struct Shard {
  int rank = 0;
  int size = 1;
  std::string launch;
  int attempt = 0;  // how often the scheduler has started this launch again (SLURM_RESTART_COUNT)
};

// From OMPI_COMM_WORLD_RANK and _SIZE (Open MPI), else from SLURM_ARRAY_TASK_ID, _MIN and _COUNT
// (an array whose ids count up by one). Empty where neither is set. Throws InputError if they are
// set and are not a valid rank and size.
std::optional<Shard> shard_from_environment();

struct ShardSettings {
  std::string folder;     // shared by all ranks, must exist
  std::string work_name;  // the same on all ranks and different for different work
  // How long rank 0 waits for the others after its own share.
  std::chrono::milliseconds patience{std::chrono::hours(24)};
  // How long it waits for a rank whose failure or interruption lay in the folder before rank 0
  // began: that rank may have been started again too.
  std::chrono::milliseconds restart_patience{std::chrono::seconds(10)};
  // Told in a line each: whom rank 0 waits for, and why rows are missing.
  std::function<void(const std::string&)> say = [](const std::string&) {};
};

// On rank 0 all results in order, or where interrupted the first ones that are done without a gap;
// on the others nothing. The failure of a piece on any rank is thrown on that rank and on rank 0,
// there that of the lowest rank that failed. Throws MachineError where a shard does not come in
// time, is none, or the folder cannot be used.
//
// Results stay in the folder until remove_shards(), so that a rank 0 that dies and is started again
// finds them; a failure that is thrown removes them.
std::vector<std::string> run_sharded(std::size_t count, int jobs, const Shard& shard,
                                     const ShardSettings& settings,
                                     const std::function<std::string(std::size_t)>& work,
                                     const JobHooks& hooks = {});

// Rank 0's, once the answer has been given.
void remove_shards(const Shard& shard, const ShardSettings& settings);

}  // namespace syncline::run
