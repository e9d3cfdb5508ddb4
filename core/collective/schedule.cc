#include "core/collective/schedule.h"

#include <array>
#include <cassert>
#include <iterator>

namespace syncline::collective {

std::string_view to_string(CollectiveKind kind) {
  constexpr std::array<std::string_view, std::size(kAllCollectiveKinds)> kNames = {
      "all_reduce", "reduce_scatter", "all_gather", "reduce", "broadcast"};
  return kNames[static_cast<std::size_t>(kind)];
}

Range part_of(std::int64_t elements, std::int64_t parts, std::int64_t index) {
  assert(0 <= index && index < parts && "a part outside the payload");
  return {index * elements / parts, (index + 1) * elements / parts};
}

}  // namespace syncline::collective
