// What one file tells: the steps of one rank.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/job/observed.h"

namespace syncline::job::kineto {

struct RankRead {
  Observed observed;  // of this file alone: one rank
  std::optional<int> rank;
  std::optional<int> world_size;
  std::vector<std::string> notes;     // warnings, without the file's name
  std::size_t operators_a_step = 0;   // that the profiler recorded on the host
  bool collectives_on_device = true;  // false: only the host's calls stand in the trace
};

// Throws InputError, naming the file and what to record instead, for what is no data-parallel
// training on GPUs or tells too little.
RankRead read_rank(const std::string& path);

}  // namespace syncline::job::kineto
