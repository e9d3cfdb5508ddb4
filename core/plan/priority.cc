#include "core/plan/buckets.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <numeric>
#include <queue>

namespace syncline::plan {

// A small simulation of the network as one server: the clock goes from moment to moment at which
// something becomes ready or leaves it. What is ready waits by urgency; the most urgent is handed
// over when the network is free, or early where the credit still has room for it.
std::vector<int> urgent_first(const std::vector<Urgent>& items, Bytes credit) {
  const auto item = [&](int place) -> const Urgent& {
    return items[static_cast<std::size_t>(place)];
  };
  std::vector<int> coming(items.size());
  std::iota(coming.begin(), coming.end(), 0);
  std::stable_sort(coming.begin(), coming.end(),
                   [&](int a, int b) { return item(a).ready < item(b).ready; });
  const auto later = [&](int a, int b) {
    return item(a).rank != item(b).rank ? item(a).rank > item(b).rank : a > b;
  };
  std::priority_queue<int, std::vector<int>, decltype(later)> waiting(later);
  std::deque<std::pair<Seconds, Bytes>> handed;  // (end, bytes), in the network's order
  Bytes under_way = 0;
  Seconds now = 0;
  std::size_t next = 0;
  std::vector<int> order;
  while (order.size() < items.size()) {
    while (next < coming.size() && item(coming[next]).ready <= now) waiting.push(coming[next++]);
    while (!handed.empty() && handed.front().first <= now) {
      under_way -= handed.front().second;
      handed.pop_front();
    }
    if (!waiting.empty()) {
      const Urgent& first = item(waiting.top());
      if (handed.empty() || under_way + first.bytes <= credit) {
        const Seconds begin = handed.empty() ? now : handed.back().first;
        handed.emplace_back(begin + first.duration, first.bytes);
        under_way += first.bytes;
        order.push_back(waiting.top());
        waiting.pop();
        continue;
      }
    }
    // On to the next moment at which something becomes ready or is through.
    now = std::min(
        next < coming.size() ? item(coming[next]).ready : std::numeric_limits<double>::infinity(),
        handed.empty() ? std::numeric_limits<double>::infinity() : handed.front().first);
  }
  return order;
}

}  // namespace syncline::plan
