#include "core/metrics.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "core/base/index.h"

namespace syncline::measure {
namespace {

// The account to which an operation's time is added.
enum class Account { kModel, kCommunication, kHandling, kNobody };

// Returns the account of an operation. Mutual slowdown of computation and collectives counts for
// the slowed side, sums in software for the collective. Handling counts only on the compute stream.
Account account_of(const plan::Plan& plan, const plan::Op& op) {
  if (std::holds_alternative<plan::Compute>(op.work)) return Account::kModel;
  const auto* busy = std::get_if<plan::Busy>(&op.work);
  if (busy == nullptr) return Account::kCommunication;
  using Reason = plan::Busy::Reason;
  const bool computes = plan.computes(op.stream);
  if (busy->reason == Reason::kSums) return Account::kCommunication;
  if (busy->reason == Reason::kInterference) {
    return computes ? Account::kModel : Account::kCommunication;
  }
  return computes && busy->reason != Reason::kTick ? Account::kHandling : Account::kNobody;
}

// Returns the length of the union of intervals. Requires ascending begins.
Seconds covered(const std::vector<std::pair<Seconds, Seconds>>& intervals) {
  Seconds sum = 0;
  Seconds until = 0;
  for (const auto& [begin, end] : intervals) {
    if (end <= until) continue;
    sum += end - std::max(begin, until);
    until = end;
  }
  return sum;
}

// Returns the role that computes most: the others wait for it.
int busiest_role(const plan::Plan& plan) {
  std::vector<Seconds> computes(index(plan.roles), 0);
  for (const auto& op : plan.ops) {
    const auto* compute = std::get_if<plan::Compute>(&op.work);
    if (compute != nullptr) computes[index(plan.role_of(op.stream))] += compute->seconds;
  }
  return static_cast<int>(std::ranges::max_element(computes) - computes.begin());
}

// Returns the bytes of the rank that sends most in one period.
double busiest_sender(const plan::Plan& plan, collective::CostCache& cache) {
  // Few distinct costs, many collectives: add up the payload of each cost first.
  std::vector<std::pair<const collective::CollectiveCost*, double>> payloads;
  std::unordered_map<const collective::CollectiveCost*, std::size_t> places;
  for (const auto& op : plan.ops) {
    const auto* collective = std::get_if<collective::Collective>(&op.work);
    if (collective == nullptr) continue;
    const collective::CollectiveCost* cost = &cache.cost(*collective);
    const auto [place, fresh] = places.try_emplace(cost, payloads.size());
    if (fresh) payloads.emplace_back(cost, 0.0);
    payloads[place->second].second += static_cast<double>(collective->bytes());
  }
  double most = 0;
  for (int rank = 0; rank < plan.ranks; ++rank) {
    double sent = 0;
    for (const auto& [cost, bytes] : payloads) sent += cost->payloads_sent(rank) * bytes;
    most = std::max(most, sent);
  }
  return most;
}

}  // namespace

double collectives_per_step(const plan::Plan& plan) {
  const auto count = std::ranges::count_if(plan.ops, [](const plan::Op& op) {
    return std::holds_alternative<collective::Collective>(op.work);
  });
  return static_cast<double>(count) / plan.steps;
}

Seconds step_time_of(const plan::Plan& plan, const run::Timeline& timeline, int warmup) {
  const auto& ends = timeline.period_ends;
  assert(warmup >= 0 && index(warmup) < ends.size() && "a period must be left");
  const auto kept = static_cast<double>(ends.size()) - warmup;
  const Seconds begin = warmup == 0 ? 0 : ends[index(warmup - 1)];
  return (ends.back() - begin) / (kept * plan.steps);
}

Metrics measure(const plan::Plan& plan, const Workload& workload, const run::Timeline& timeline,
                int warmup, collective::CostCache& cache) {
  const double steps = (static_cast<double>(timeline.period_ends.size()) - warmup) * plan.steps;

  // One rank represents all: its compute stream and the collectives under way on it.
  const int role = busiest_role(plan);
  Metrics metrics;
  metrics.step_time = step_time_of(plan, timeline, warmup);
  std::vector<std::pair<Seconds, Seconds>> busy;
  for (const auto& span : timeline.spans) {
    if (span.rank != role * plan.role_step || span.period < warmup) continue;
    const plan::Op& op = plan.ops[index(span.op)];
    if (plan.role_of(op.stream) != role) continue;
    const Account account = account_of(plan, op);
    if (account == Account::kModel) metrics.compute += span.end - span.begin;
    if (account == Account::kHandling) metrics.comm_overhead += span.end - span.begin;
    if (account == Account::kCommunication) busy.emplace_back(span.begin, span.end);
  }
  if (!std::ranges::is_sorted(busy)) std::ranges::sort(busy);
  metrics.compute /= steps;
  metrics.communication = covered(busy) / steps;
  const Seconds rest = std::max(0.0, metrics.step_time - metrics.compute);
  metrics.comm_overhead = std::min(metrics.comm_overhead / steps, rest);
  metrics.exposed = rest - metrics.comm_overhead;
  // Sums of the same durations in another order differ by an ulp or two: no exposed time.
  if (metrics.exposed < 1e-12 * metrics.step_time) metrics.exposed = 0;
  const int replicas = plan.ranks / workload.parallel.model_ranks();
  metrics.throughput = workload.batch_given ? static_cast<double>(samples_of(workload)) * replicas /
                                                  metrics.step_time
                                            : std::numeric_limits<double>::quiet_NaN();
  if (plan.ranks > 1) {
    metrics.collectives = collectives_per_step(plan);
    metrics.bytes_on_wire = busiest_sender(plan, cache) / plan.steps;
  }
  return metrics;
}

Metrics mean_of(const std::vector<std::pair<Metrics, double>>& phases,
                std::int64_t samples_per_step) {
  Metrics mean;
  for (const auto figure :
       {&Metrics::step_time, &Metrics::compute, &Metrics::communication, &Metrics::exposed,
        &Metrics::comm_overhead, &Metrics::collectives, &Metrics::bytes_on_wire}) {
    double steps = 0;
    for (const auto& [metrics, own] : phases) {
      steps += own;
      mean.*figure += metrics.*figure * own;
    }
    mean.*figure /= steps;
  }
  const bool known = !phases.empty() && !std::isnan(phases.front().first.throughput);
  mean.throughput = known ? static_cast<double>(samples_per_step) / mean.step_time
                          : std::numeric_limits<double>::quiet_NaN();
  return mean;
}

}  // namespace syncline::measure
