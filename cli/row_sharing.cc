#include "cli/row_sharing.h"

#include <iostream>

#include "core/error.h"

namespace syncline::cli {

std::optional<run::Shard> shard_among_ranks(const std::string& folder) {
  if (folder.empty()) return std::nullopt;
  auto shard = run::shard_from_environment();
  if (shard) return shard;
  throw InputError(
      "--shards: not running as a rank: neither OMPI_COMM_WORLD_RANK (mpirun) nor "
      "SLURM_ARRAY_TASK_ID (sbatch --array) is set");
}

namespace {

run::ShardSettings settings_for(const std::string& folder, const std::string& work_name) {
  run::ShardSettings settings;
  settings.folder = folder;
  settings.work_name = work_name;
  settings.say = [](const std::string& text) { std::cerr << "syncline: " << text << "\n"; };
  return settings;
}

}  // namespace

run::ParallelMap shared_rows(int jobs, const std::string& folder,
                             const std::optional<run::Shard>& shard, const std::string& work_name) {
  if (!shard) return run::over_processes(jobs);
  return [=, settings = settings_for(folder, work_name)](
             std::size_t count, const std::function<std::string(std::size_t)>& work,
             const run::JobHooks& hooks) {
    return run::run_sharded(count, jobs, *shard, settings, work, hooks);
  };
}

void forget_shared_rows(const std::string& folder, const std::optional<run::Shard>& shard,
                        const std::string& work_name) {
  if (shard) run::remove_shards(*shard, settings_for(folder, work_name));
}

}  // namespace syncline::cli
