#include "core/collective/schedule.h"

#include <cassert>

namespace syncline::collective {

std::string_view to_string(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return "all_reduce";
    case CollectiveKind::kReduceScatter:
      return "reduce_scatter";
    case CollectiveKind::kAllGather:
      return "all_gather";
    case CollectiveKind::kReduce:
      return "reduce";
    case CollectiveKind::kBroadcast:
      return "broadcast";
  }
  assert(false && "a collective kind without a name");
  return "?";
}

Range part_of(std::int64_t elements, std::int64_t parts, std::int64_t index) {
  assert(0 <= index && index < parts && "a part outside the payload");
  return {index * elements / parts, (index + 1) * elements / parts};
}

}  // namespace syncline::collective
