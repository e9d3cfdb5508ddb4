#include "core/plan/cycles.h"

#include <algorithm>
#include <cmath>
#include <deque>

namespace syncline::plan {
namespace {

std::vector<std::vector<int>> packed(std::deque<int> ready, const std::vector<OnWire>& wire,
                                     Bytes threshold) {
  std::vector<std::vector<int>> groups;
  while (!ready.empty()) {
    const OnWire& first = wire[static_cast<std::size_t>(ready.front())];
    auto& group = groups.emplace_back(1, ready.front());
    ready.pop_front();
    Bytes bytes = first.bytes;
    Bytes looked_past = 0;
    std::vector<int> skipped;
    while (!ready.empty()) {
      const OnWire& next = wire[static_cast<std::size_t>(ready.front())];
      if (next.dtype == first.dtype && bytes + next.bytes <= threshold) {
        group.push_back(ready.front());
        bytes += next.bytes;
      } else {
        looked_past += next.bytes;
        if (bytes + looked_past > threshold) break;
        skipped.push_back(ready.front());
      }
      ready.pop_front();
    }
    ready.insert(ready.begin(), skipped.begin(), skipped.end());
  }
  return groups;
}

}  // namespace

std::vector<Release> tick_releases(const std::vector<Seconds>& ready,
                                   const std::vector<OnWire>& wire, Bytes threshold, Seconds cycle,
                                   Seconds phase) {
  std::vector<Release> releases;
  std::size_t next = 0;
  while (next < ready.size()) {
    const double cycles = std::max(0.0, std::ceil((ready[next] - phase) / cycle));
    // Rounding must not put a gradient's own tick before it.
    const Seconds time = std::max(phase + cycles * cycle, ready[next]);
    std::deque<int> there;
    while (next < ready.size() && ready[next] <= time) there.push_back(static_cast<int>(next++));
    releases.push_back({time, packed(std::move(there), wire, threshold)});
  }
  return releases;
}

}  // namespace syncline::plan
