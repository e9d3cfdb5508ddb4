#include "live/timeline_exchange.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "live/figures.h"

namespace syncline::live {

run::Timeline exchange_timelines(ControlChannel& channel, std::vector<run::Span> own, int periods,
                                 const ClockOffset& before, const ClockOffset& after) {
  Seconds first = std::numeric_limits<double>::infinity();
  Seconds last = -first;
  plan::OpId last_op = -1;
  for (const auto& span : own) {
    last_op = std::max(last_op, span.op);
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

  run::Timeline timeline;
  const auto all = channel.gather(bytes_of(own));
  for (std::size_t r = 0; r < all.size(); ++r) {
    const int rank = static_cast<int>(r);
    const auto spans = figures_in<run::Span>(all[r], channel, rank);
    // Every rank walks the same operations.
    const auto sound = [&](const run::Span& span) {
      return span.rank == rank && span.period >= 0 && span.period < periods && span.op >= 0 &&
             span.op <= last_op && std::isfinite(span.begin) && std::isfinite(span.end);
    };
    if (!std::all_of(spans.begin(), spans.end(), sound)) {
      channel.broken_by(rank, "it gave an operation that is none of the plan's");
    }
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
  const auto all = channel.gather(bytes_of(std::vector{own}));
  Seconds worst = 0;
  for (std::size_t r = 0; r < all.size(); ++r) {
    const int rank = static_cast<int>(r);
    worst = std::max(worst, figures_in<Seconds>(all[r], channel, rank, 1).front());
  }
  return worst;
}

}  // namespace syncline::live
