// What another rank is said to have left of its share of a run.
#include <filesystem>
#include <fstream>

#include "core/run/shards.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/scratch.h"

SYNCLINE_FUZZ_TARGET(shard, bytes) {
  using namespace syncline;
  static const test::Scratch scratch;
  const run::Shard shard{.rank = 0, .size = 2, .launch = "one", .attempt = 0};
  run::ShardSettings settings;
  settings.folder = scratch.folder();
  settings.work_name = "work";
  settings.patience = settings.restart_patience = std::chrono::milliseconds(0);
  std::ofstream(scratch.path("shard-work-one-1-of-2"), std::ios::binary) << bytes;
  try {
    const auto results = run::run_sharded(5, 1, shard, settings,
                                          [](std::size_t piece) { return std::to_string(piece); });
    // Pieces 1 and 3 are the other rank's.
    for (std::size_t piece = 0; piece < results.size(); piece += 2) {
      if (results[piece] != std::to_string(piece)) std::abort();
    }
  } catch (const MachineError& error) {
    throw InputError(error.what());
  }
}
