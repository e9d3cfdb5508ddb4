// A collective as data: rounds of transfers between the members of one group. The host executor
// moves floats by it, the step-by-step simulation moves bytes by it, and live backends may too.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace syncline::collective {

// The payload is `elements` long on every rank:
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

// Part `index` of `parts` nearly equal parts: [index * elements / parts, (index+1) * elements /
// parts).
Range part_of(std::int64_t elements, std::int64_t parts, std::int64_t index);

struct Transfer {
  int from = 0;  // member indices inside the group
  int to = 0;
  Range elements;
  bool add = false;  // add: sum into the receiver's elements; otherwise overwrite them
};

using Round = std::vector<Transfer>;  // all transfers read what stood before the round
using Schedule = std::vector<Round>;

// The same collective for costing: rounds that load the links alike are listed once with a count,
// so thousands of ranks stay affordable. `fraction` is the share of the payload that an edge
// carries in each of the `repeat` rounds.
struct Edge {
  int from = 0;
  int to = 0;
  double fraction = 0;
};

struct Stage {
  std::vector<Edge> edges;
  std::int64_t repeat = 1;
};

using Stages = std::vector<Stage>;

}  // namespace syncline::collective
