#include "core/plan/mg_wfbp.h"

#include <algorithm>

namespace syncline::plan {

std::vector<std::vector<int>> mg_wfbp_groups(const std::vector<Seconds>& ready,
                                             const std::vector<Bytes>& bytes, Seconds start_up,
                                             const std::function<Seconds(Bytes)>& cost,
                                             Bytes least) {
  std::vector<std::vector<int>> groups;
  Seconds free = 0;  // when the groups before the open one are through
  Bytes open = 0;
  for (std::size_t i = 0; i < ready.size(); ++i) {
    if (i > 0) {
      const Seconds begin = std::max(free, ready[i - 1]);
      const Seconds end = begin + cost(open);
      const bool worth_waiting = begin > ready[i] || ready[i] - begin < start_up;
      if (open < least || (ready[i] < end && worth_waiting)) {
        groups.back().push_back(static_cast<int>(i));
        open += bytes[i];
        continue;
      }
      free = end;
    }
    groups.push_back({static_cast<int>(i)});
    open = bytes[i];
  }
  return groups;
}

}  // namespace syncline::plan
