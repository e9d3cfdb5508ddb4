// One collective of a plan: its kind, algorithm, ranks and payload.
#pragma once

#include <cstdint>
#include <optional>

#include "core/algorithm.h"
#include "core/base/units.h"

namespace syncline::collective {

// Ranks that take part in a collective. A plan is SPMD: one operation is the same collective in
// every group of a regular partition, e.g. "reduce inside each node".

// `count` groups of `size` members; member m of group g is world rank base + g * group_step + m *
// member_step. If `run` > 0, groups form runs of `run`, and each run begins `run_step` ranks after
// the previous one. Member 0 is the root, if one is needed.
struct Groups {
  int base = 0;
  int count = 1;
  int group_step = 0;
  int size = 1;
  int member_step = 1;
  int run = 0;  // 0: all groups are one run
  int run_step = 0;

  int rank(int group, int member) const {
    const int first =
        run > 0 ? group % run * group_step + group / run * run_step : group * group_step;
    return base + first + member * member_step;
  }
  bool operator==(const Groups&) const = default;
};

// Returns the same ranks, each group's lowest one first: a message may go to an earlier rank.
inline Groups ascending(Groups groups) {
  if (groups.member_step >= 0) return groups;
  groups.base += (groups.size - 1) * groups.member_step;
  groups.member_step = -groups.member_step;
  return groups;
}

// A rank's group and its index there.
struct GroupPlace {
  int group = 0;
  int member = 0;
};

inline std::optional<GroupPlace> find_place(const Groups& groups, int rank) {
  for (int group = 0; group < groups.count; ++group) {
    for (int member = 0; member < groups.size; ++member) {
      if (groups.rank(group, member) == rank) return GroupPlace{group, member};
    }
  }
  return std::nullopt;
}

// Returns all ranks in one group.
inline Groups world_group(int ranks) { return {0, 1, 0, ranks, 1}; }
// Returns consecutive blocks: {0..size-1}, {size..2size-1}, ... Requires `size` to divide `ranks`.
inline Groups block_groups(int ranks, int size) { return {0, ranks / size, size, size, 1}; }
// Returns one group: the first rank of every block.
inline Groups leader_group(int ranks, int size) { return {0, 1, 0, ranks / size, size}; }
// Returns `size` groups: ranks with the same index in their block.
inline Groups shard_groups(int ranks, int size) { return {0, size, 1, ranks / size, size}; }

// NCCL's algorithms and protocols, in the order of its trials.
enum class NcclAlgorithm { kTree, kRing, kCollNetDirect, kCollNetChain, kNvls, kNvlsTree, kPat };
enum class NcclProtocol { kLl, kLl128, kSimple };

// NCCL's choice for a payload.
struct NcclPick {
  NcclAlgorithm algorithm = NcclAlgorithm::kRing;
  NcclProtocol protocol = NcclProtocol::kSimple;
  bool operator==(const NcclPick&) const = default;
};

// The same collective in each of `groups`. The payload is `elements` units of `unit` bytes.
struct Collective {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  const Algorithm* algorithm = nullptr;
  Groups groups;
  std::int64_t elements = 0;
  Bytes unit = 4;
  int bucket = 0;  // of the plan
  // NCCL's choice, if the strategy's algorithm is `nccl`. `algorithm` is then the nearest one known
  // here, and the time is that of NCCL's cost model.
  std::optional<NcclPick> nccl = {};

  Bytes bytes() const { return elements * unit; }
};

}  // namespace syncline::collective
