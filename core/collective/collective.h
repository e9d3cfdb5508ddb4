// One collective as a plan asks for it: what, how, who and how much.
#pragma once

#include <cstdint>
#include <optional>

#include "core/collective/algorithm.h"
#include "core/collective/groups.h"
#include "core/units.h"

namespace syncline::collective {

// NCCL's algorithms and protocols, in the order in which it tries them.
enum class NcclAlgorithm { kTree, kRing, kCollNetDirect, kCollNetChain, kNvls, kNvlsTree, kPat };
enum class NcclProtocol { kLl, kLl128, kSimple };

// What NCCL would run this payload with.
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
  // Set where the strategy's algorithm is `nccl`: `algorithm` is then the nearest that is known
  // here to NCCL's own, and the time is that of its cost model.
  std::optional<NcclPick> nccl = {};

  Bytes bytes() const { return elements * unit; }
};

}  // namespace syncline::collective
