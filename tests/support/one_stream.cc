#include "tests/support/one_stream.h"

#include <algorithm>
#include <cassert>
#include <deque>
#include <memory>

namespace syncline::test {
namespace {

std::vector<double> prefix_sums(const std::vector<double>& values) {
  std::vector<double> sums(values.size() + 1, 0.0);
  for (std::size_t i = 0; i < values.size(); ++i) sums[i + 1] = sums[i] + values[i];
  return sums;
}

// Follows the choices back from the last gradient.
std::vector<std::size_t> ends_of(const std::vector<std::size_t>& begin_of_last) {
  std::vector<std::size_t> ends;
  for (std::size_t i = begin_of_last.size() - 1; i > 0; i = begin_of_last[i]) ends.push_back(i - 1);
  std::reverse(ends.begin(), ends.end());
  return ends;
}

}  // namespace

tune::FusionPlan best_fusion(const FusionProblem& problem, const AffineCost& cost) {
  const auto& ready = problem.ready;
  const std::size_t count = ready.size();
  const double rate = cost.seconds_per_byte;
  const auto sums = prefix_sums(problem.bytes);
  std::vector<Seconds> finish(count + 1, 0);
  std::vector<std::size_t> choice(count + 1, 0);
  // The longest prefix that is done by the moment at hand, and the candidates behind it by rising
  // finish[j] - rate * sums[j].
  std::size_t done = 0;
  std::deque<std::size_t> window;
  const auto lead = [&](std::size_t j) { return finish[j] - rate * sums[j]; };
  for (std::size_t i = 1; i <= count; ++i) {
    const Seconds now = ready[i - 1];
    if (const std::size_t j = i - 1; j > 0) {
      while (!window.empty() && lead(window.back()) > lead(j)) window.pop_back();
      window.push_back(j);
    }
    while (done + 1 < i && finish[done + 1] <= now) ++done;
    while (!window.empty() && window.front() <= done) window.pop_front();

    finish[i] = now + cost.latency + rate * (sums[i] - sums[done]);
    choice[i] = done;
    if (window.empty()) continue;
    const std::size_t j = window.front();
    const Seconds end = finish[j] + cost.latency + rate * (sums[i] - sums[j]);
    if (end >= finish[i]) continue;
    finish[i] = end;
    choice[i] = j;
  }
  return {finish[count], ends_of(choice)};
}

Seconds finish_of(const std::vector<Seconds>& ready, const std::vector<std::size_t>& ends,
                  const tune::RunCost& cost) {
  Seconds now = 0;
  std::size_t first = 0;
  for (const std::size_t end : ends) {
    now = std::max(now, ready[end]) + cost(first, end + 1);
    first = end + 1;
  }
  return now;
}

Seconds fusion_lower_bound(const FusionProblem& problem, const AffineCost& cost) {
  Seconds bound = 0;
  double later = 0;
  for (std::size_t i = problem.ready.size(); i-- > 0;) {
    later += problem.bytes[i];
    bound = std::max(bound, problem.ready[i] + cost.latency + cost.seconds_per_byte * later);
  }
  return bound;
}

tune::RunCost run_cost(const FusionProblem& problem, const AffineCost& cost) {
  const auto sums = std::make_shared<const std::vector<double>>(prefix_sums(problem.bytes));
  return [sums, cost](std::size_t first, std::size_t end) {
    return cost.latency + cost.seconds_per_byte * ((*sums)[end] - (*sums)[first]);
  };
}

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

}  // namespace syncline::test
