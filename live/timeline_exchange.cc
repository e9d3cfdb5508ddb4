#include "live/timeline_exchange.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace syncline::live {

run::Timeline exchange_timelines(ControlChannel& channel, std::vector<run::Span> own, int periods,
                                 const ClockOffset& before, const ClockOffset& after) {
  Seconds first = std::numeric_limits<double>::infinity();
  Seconds last = -first;
  for (const auto& span : own) {
    first = std::min(first, span.begin);
    last = std::max(last, span.end);
  }
  // A drift that the two measurements cannot tell from their own errors is none.
  const Seconds drift = after.add - before.add;
  const bool drifts = std::abs(drift) > before.error + after.error;
  const Seconds still = before.error <= after.error ? before.add : after.add;
  const auto on_first_clock = [&](Seconds time) {
    if (!drifts) return time + still;
    const double share = last > first ? (time - first) / (last - first) : 0;
    return time + before.add + share * drift;
  };
  for (auto& span : own) {
    span.begin = on_first_clock(span.begin);
    span.end = on_first_clock(span.end);
  }

  std::string mine(own.size() * sizeof(run::Span), '\0');
  if (!own.empty()) std::memcpy(mine.data(), own.data(), mine.size());
  run::Timeline timeline;
  for (const auto& text : channel.gather(mine)) {
    std::vector<run::Span> spans(text.size() / sizeof(run::Span));
    if (!spans.empty()) std::memcpy(spans.data(), text.data(), text.size());
    timeline.spans.insert(timeline.spans.end(), spans.begin(), spans.end());
  }
  Seconds begun = std::numeric_limits<double>::infinity();
  for (const auto& span : timeline.spans) begun = std::min(begun, span.begin);
  timeline.period_ends.assign(static_cast<std::size_t>(periods), 0);
  for (auto& span : timeline.spans) {
    span.begin -= begun;
    span.end -= begun;
    auto& end = timeline.period_ends[static_cast<std::size_t>(span.period)];
    end = std::max(end, span.end);
  }
  return timeline;
}

Seconds worst_clock_error(ControlChannel& channel, const ClockOffset& before,
                          const ClockOffset& after) {
  const Seconds own = std::max(before.error, after.error) + std::abs(after.add - before.add);
  std::string mine(sizeof own, '\0');
  std::memcpy(mine.data(), &own, sizeof own);
  Seconds worst = 0;
  for (const auto& text : channel.gather(mine)) {
    Seconds error = 0;
    std::memcpy(&error, text.data(), sizeof error);
    worst = std::max(worst, error);
  }
  return worst;
}

}  // namespace syncline::live
