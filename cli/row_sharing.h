// Who prices the rows of a run: this process, others beside it, or ranks that share a folder.
#pragma once

#include <optional>
#include <string>

#include "core/run/jobs.h"
#include "core/run/shards.h"

namespace syncline::cli {

// This process's place among the ranks that share the sweep; empty without a folder. Throws
// InputError where neither mpirun nor a Slurm array started it.
std::optional<run::Shard> shard_among_ranks(const std::string& folder);

// Empty: the rows are priced here, one after the other. `work_name` tells this work from others in
// the same folder.
run::ParallelMap shared_rows(int jobs, const std::string& folder,
                             const std::optional<run::Shard>& shard, const std::string& work_name);

// Once rank 0 has given the whole answer: until then a rank 0 that dies finds the rows again.
void forget_shared_rows(const std::string& folder, const std::optional<run::Shard>& shard,
                        const std::string& work_name);

}  // namespace syncline::cli
