// A collective as data: rounds of transfers between the members of one group. The host executor
// moves floats by it, the step-by-step simulation moves bytes by it, and live backends may too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace syncline::collective {

// Effect of each kind on a payload of `elements` on every rank:
//   all_reduce      everyone ends with the sum
//   reduce_scatter  member m ends with the sum in shard m
//   all_gather      member m begins with shard m; everyone ends with all shards
//   reduce          member 0 ends with the sum
//   broadcast       member 0's payload ends everywhere
enum class CollectiveKind { kAllReduce, kReduceScatter, kAllGather, kReduce, kBroadcast };

inline constexpr CollectiveKind kAllCollectiveKinds[] = {
    CollectiveKind::kAllReduce, CollectiveKind::kReduceScatter, CollectiveKind::kAllGather,
    CollectiveKind::kReduce, CollectiveKind::kBroadcast};

std::string_view to_string(CollectiveKind kind);

// Elements [begin, end) of the payload.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

// Returns one of nearly equal parts: [index * elements / parts, (index+1) * elements / parts).
Range part_of(std::int64_t elements, std::int64_t parts, std::int64_t index);

struct Transfer {
  int from = 0;  // member indices inside the group
  int to = 0;
  Range elements;
  bool add = false;  // add: sum into the receiver's elements; otherwise overwrite them
};

using Round = std::vector<Transfer>;  // all transfers read the state before the round
using Schedule = std::vector<Round>;

// The same collective for costing. Edges that are always busy together are one set, listed once for
// any number of rounds: thousands of ranks in a pipeline of a hundred rounds stay affordable.
struct Edge {
  int from = 0;  // member indices inside the group
  int to = 0;
  bool operator==(const Edge&) const = default;
};

using EdgeSet = std::vector<Edge>;
using EdgeSets = std::vector<EdgeSet>;

// `repeat` rounds in a row; in each, every edge of the sets [first, last) carries `fraction` of the
// payload.
struct Stage {
  std::size_t first = 0;
  std::size_t last = 0;
  double fraction = 0;
  std::int64_t repeat = 1;
};

using Stages = std::vector<Stage>;

}  // namespace syncline::collective
