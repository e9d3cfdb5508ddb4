#include "core/tune/one_stream.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

namespace syncline {
namespace {

std::vector<std::size_t> ends_below(const std::vector<double>& bytes, double limit) {
  std::vector<std::size_t> ends;
  double held = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (held > 0 && held + bytes[i] > limit) {
      ends.push_back(i - 1);
      held = 0;
    }
    held += bytes[i];
  }
  ends.push_back(bytes.size() - 1);
  return ends;
}

}  // namespace

StepTrace step_trace(const Workload& workload) {
  StepTrace trace;
  trace.forward = workload.forward;
  trace.update = workload.update;
  Seconds now = 0;
  for (const auto& tensor : workload.tensors) {
    now += tensor.backward;
    trace.gradients.ready.push_back(now);
    trace.gradients.bytes.push_back(static_cast<double>(tensor.bytes()));
  }
  return trace;
}

Seconds step_time(const StepTrace& trace, const std::vector<std::size_t>& ends,
                  const AffineCost& cost) {
  const FusionProblem& gradients = trace.gradients;
  Seconds done = 0;
  std::size_t first = 0;
  for (const std::size_t last : ends) {
    double bytes = 0;
    for (; first <= last; ++first) bytes += gradients.bytes[first];
    done = std::max(done, gradients.ready[last]) + cost.latency + cost.seconds_per_byte * bytes;
  }
  assert(first == gradients.bytes.size() && "the last bucket ends with the last gradient");
  return trace.forward + std::max(done, gradients.ready.back()) + trace.update;
}

Seconds optimal_step_time(const StepTrace& trace, const AffineCost& cost) {
  return step_time(trace, best_fusion(trace.gradients, cost).ends, cost);
}

std::vector<std::vector<std::size_t>> sampled_thresholds(const FusionProblem& gradients,
                                                         int count) {
  assert(count >= 2 && "from the smallest gradient to all of them");
  const auto& bytes = gradients.bytes;
  const double least = std::max(1.0, *std::min_element(bytes.begin(), bytes.end()));
  const double all = std::accumulate(bytes.begin(), bytes.end(), 0.0);
  std::vector<std::vector<std::size_t>> list;
  for (int k = 0; k < count; ++k) {
    const double share = static_cast<double>(k) / static_cast<double>(count - 1);
    // Half a byte of slack: the last limit is all gradients, whatever pow rounds to.
    auto ends = ends_below(bytes, least * std::pow(all / least, share) + 0.5);
    if (list.empty() || list.back() != ends) list.push_back(std::move(ends));
  }
  return list;
}

}  // namespace syncline
