// Numbers of nodes and ranks that a command or a sentence around a table states.
#pragma once

#include <string_view>

namespace syncline::calibrate {

struct SaidShape {
  int nodes = 0;
  int ranks = 0;      // processes by a command, ranks or GPUs by a sentence
  int per_node = 0;   // processes
  int gpus_each = 0;  // of a process: -g x -t of a test's command
};

// Reads "srun --nodes=4 --ntasks-per-node=8", "mpirun -np 16 -npernode 8", "-H a:8,b:8",
// "all_reduce_perf -g 8", "2 nodes", "16 ranks". Several numbers of one kind state none.
SaidShape shape_in(std::string_view line);

}  // namespace syncline::calibrate
