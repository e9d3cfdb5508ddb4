// State that MindSpore's set_auto_parallel_context and set_comm_fusion set, read with MindSpore's
// own errors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/dialect/dialect.h"
#include "formats/json/reader.h"

namespace syncline::dialect::mindspore {

using Ids = std::vector<std::int64_t>;

inline constexpr std::int64_t kDefaultMb = 64;
inline constexpr std::int64_t kDefaultId = 1;  // Parameter.comm_fusion
inline constexpr std::int64_t kDefaultShardKb = 64;

enum class Mode { kData, kHybrid, kSemiAuto, kAuto };

struct Context {
  Mode mode = Mode::kData;
  bool enabled = true;                            // openstate
  std::optional<std::int64_t> megabytes;          // set by allreduce in auto or size mode
  std::vector<std::int64_t> split_indices;        // set by allreduce in index mode, inclusive ends
  std::optional<std::int64_t> gather_megabytes;   // set by allgather
  std::optional<std::int64_t> scatter_megabytes;  // set by reducescatter
  bool by_hand = false;                           // set_comm_fusion was called
  // enable_parallel_optimizer: gradients are scattered, parameters gathered.
  bool sharded = false;
  std::int64_t shard_kb = kDefaultShardKb;  // smaller parameters stay whole

  bool front_end() const { return mode == Mode::kSemiAuto || mode == Mode::kAuto; }
};

Context read_context(Reader& config, std::vector<std::string>& notes);

// Returns fusion ids in parameter order (first layer first). Sets context.by_hand if one was set.
Ids read_ids(Reader& config, const std::vector<const Tensor*>& parameters, Context& context);

}  // namespace syncline::dialect::mindspore
