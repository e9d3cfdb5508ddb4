#include "reports/trace.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace syncline::reports {
namespace {

struct Change {
  std::int64_t bytes = 0;
  int exchanges = 0;
  int computing = 0;
  std::map<std::size_t, double> links = {};
};

}  // namespace

std::int64_t nanoseconds(Seconds time) { return std::llround(time * 1e9); }

std::vector<Counted> counters_of(const measure::Traced& traced, int rank) {
  std::map<std::int64_t, Change> changes;
  for (const auto& span : traced.timeline.spans) {
    const std::int64_t begin = nanoseconds(span.begin), end = nanoseconds(span.end);
    if (span.rank != rank || end <= begin) continue;
    const plan::Op& op = traced.plan.ops[static_cast<std::size_t>(span.op)];
    if (const auto* exchange = std::get_if<collective::Collective>(&op.work)) {
      changes[begin].bytes += exchange->bytes();
      changes[end].bytes -= exchange->bytes();
      ++changes[begin].exchanges;
      --changes[end].exchanges;
      for (std::size_t link = 0; link < traced.links.size(); ++link) {
        const Seconds busy = traced.links[link].of_op[static_cast<std::size_t>(span.op)];
        changes[begin].links[link] += busy / (span.end - span.begin);
        changes[end].links[link] -= busy / (span.end - span.begin);
      }
    }
    if (!traced.plan.computes(op.stream)) continue;
    ++changes[begin].computing;
    --changes[end].computing;
  }
  std::vector<Counted> counters;
  Counted now;
  now.links.assign(traced.links.size(), 0);
  int exchanges = 0, computing = 0;
  for (const auto& [time, change] : changes) {
    const Counted before = now;
    now.nanoseconds = time;
    now.bytes_in_flight += change.bytes;
    exchanges += change.exchanges;
    computing += change.computing;
    now.exposed = exchanges > 0 && computing == 0;
    for (const auto& [link, share] : change.links) {
      constexpr double kRounding = 1e-9;
      now.links[link] = std::max(0.0, now.links[link] + share);
      if (now.links[link] < kRounding) now.links[link] = 0;
    }
    if (now.bytes_in_flight != before.bytes_in_flight || now.exposed != before.exposed ||
        now.links != before.links) {
      counters.push_back(now);
    }
  }
  return counters;
}

}  // namespace syncline::reports
