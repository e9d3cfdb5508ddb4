// MindSpore's rules for which gradients (and which sharded parameters) travel together. Parameters
// come first layer first; groups hold their places in that order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/dialect/dialect.h"
#include "core/json/reader.h"

namespace syncline::dialect::mindspore {

// What MindSpore's set_auto_parallel_context and set_comm_fusion have come to hold, read with the
// exceptions that MindSpore raises.

using Ids = std::vector<std::int64_t>;

// One "MB" is 2^18: elements in the front end (1 MiB of FP32), bytes in the data-parallel pass,
// where it is a quarter of a MiB (kDefaultThresholdMb2Byte in communication_op_fusion.cc).
inline constexpr std::int64_t kPerMb = 262144;
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

std::string counted(std::size_t count, const std::string& noun);  // "1 gradient", "2 gradients"

Context read_context(Reader& config, std::vector<std::string>& notes);

// Fusion ids in parameter order (first layer first); marks the context where any was set by hand.
Ids read_ids(Reader& config, const std::vector<const Tensor*>& parameters, Context& context);

using Parts = std::vector<std::vector<int>>;

// Semi-automatic and automatic parallel: ids by size in the front end, then the backend pass.
Parts front_end_groups(const Context& context, const std::vector<const Tensor*>& parameters,
                       Ids ids, std::vector<std::string>& notes);

// Data and hybrid parallel: nn.DistributedGradReducer puts the ids onto the AllReduces. Ids that
// are all the same count as none.
Parts reducer_groups(const Context& context, const std::vector<const Tensor*>& parameters, Ids ids,
                     std::vector<std::string>& notes);

// The documents' words: a fusion buffer of so many MB, the entries of an index list as counts of
// gradients, ids of set_comm_fusion in every mode, openstate False for no fusion.
Parts documented_groups(const Context& context, const std::vector<const Tensor*>& parameters,
                        const Ids& ids);

// A parallel optimizer: large parameters whose first dimension the ranks divide are sharded.
struct Sharded {
  Parts all_reduced;  // gradients of the others
  Parts scattered;    // gradients of the sharded parameters
  Parts gathered;     // those parameters, before their forward pass
};
Sharded sharded_groups(const Context& context, const std::vector<const Tensor*>& parameters,
                       const Ids& ids, int ranks, std::vector<std::string>& notes);

}  // namespace syncline::dialect::mindspore
