#include "core/tune/one_stream.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>

namespace syncline {

StepTrace step_trace(const Workload& workload) {
  StepTrace trace;
  trace.forward = workload.forward;
  trace.update = workload.update;
  Seconds now = 0;
  for (const auto& tensor : workload.tensors) {
    now += tensor.backward;
    trace.ready.push_back(now);
    trace.bytes.push_back(tensor.bytes());
  }
  return trace;
}

Seconds step_time(const StepTrace& trace, const Ends& ends, const AffineCost& cost) {
  Seconds done = 0;
  std::size_t first = 0;
  for (const auto end : ends) {
    const auto last = static_cast<std::size_t>(end);
    Bytes bytes = 0;
    for (; first <= last; ++first) bytes += trace.bytes[first];
    done = std::max(done, trace.ready[last]) + cost.of(bytes);
  }
  assert(first == trace.bytes.size() && "the last bucket ends with the last gradient");
  return trace.forward + std::max(done, trace.ready.back()) + trace.update;
}

Ends optimal_ends(const StepTrace& trace, const AffineCost& cost) {
  const std::size_t count = trace.bytes.size();
  std::vector<Seconds> finish(count + 1, std::numeric_limits<Seconds>::infinity());
  std::vector<std::size_t> from(count + 1, 0);
  finish[0] = 0;
  for (std::size_t i = 1; i <= count; ++i) {
    Bytes bytes = 0;
    for (std::size_t j = i; j-- > 0;) {
      bytes += trace.bytes[j];
      const Seconds done = std::max(finish[j], trace.ready[i - 1]) + cost.of(bytes);
      if (done < finish[i]) {
        finish[i] = done;
        from[i] = j;
      }
    }
  }
  Ends ends;
  for (std::size_t i = count; i > 0; i = from[i]) ends.push_back(static_cast<std::int64_t>(i) - 1);
  std::reverse(ends.begin(), ends.end());
  return ends;
}

std::vector<Ends> threshold_ends(const StepTrace& trace, int count) {
  assert(count >= 2 && "from the smallest gradient to all of them");
  const auto least = std::max<Bytes>(1, *std::min_element(trace.bytes.begin(), trace.bytes.end()));
  const auto all = std::accumulate(trace.bytes.begin(), trace.bytes.end(), Bytes{0});
  const double ratio = static_cast<double>(all) / static_cast<double>(least);
  std::vector<Ends> list;
  for (int k = 0; k < count; ++k) {
    const double limit = static_cast<double>(least) *
                         std::pow(ratio, static_cast<double>(k) / static_cast<double>(count - 1));
    Ends ends;
    Bytes bytes = 0;
    for (std::size_t i = 0; i < trace.bytes.size(); ++i) {
      // Half a byte of slack: the last limit is all gradients, whatever pow rounds to.
      if (bytes > 0 && static_cast<double>(bytes + trace.bytes[i]) > limit + 0.5) {
        ends.push_back(static_cast<std::int64_t>(i) - 1);
        bytes = 0;
      }
      bytes += trace.bytes[i];
    }
    ends.push_back(static_cast<std::int64_t>(trace.bytes.size()) - 1);
    if (list.empty() || list.back() != ends) list.push_back(ends);
  }
  return list;
}

}  // namespace syncline
