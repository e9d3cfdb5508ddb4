// One collective as a plan asks for it: what, how, who and how much.
#pragma once

#include <cstdint>

#include "core/collective/algorithm.h"
#include "core/collective/groups.h"
#include "core/units.h"

namespace syncline {

// The same collective in each of `groups`. The payload is `elements` units of `unit` bytes.
struct Collective {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  const Algorithm* algorithm = nullptr;
  Groups groups;
  std::int64_t elements = 0;
  Bytes unit = 4;
  int bucket = 0;  // of the plan

  Bytes bytes() const { return elements * unit; }
};

}  // namespace syncline
