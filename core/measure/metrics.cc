#include "core/measure/metrics.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <numeric>
#include <set>

namespace syncline {
namespace {

bool is_model_work(const Work& work) { return std::holds_alternative<Compute>(work); }
bool is_collective(const Work& work) { return std::holds_alternative<Collective>(work); }

// Length of the union of intervals, given by rising begin.
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

// How long each link works for a byte of each price's payload; links that work alike are told once.
std::vector<std::vector<double>> link_profiles(const std::vector<const CollectivePrice*>& prices) {
  std::map<int, std::vector<double>> by_link;
  for (std::size_t p = 0; p < prices.size(); ++p) {
    for (const auto& stage : prices[p]->stages) {
      for (const auto& [link, seconds] : stage.links) {
        auto& profile = by_link[link];
        profile.resize(prices.size(), 0.0);
        profile[p] += seconds;
      }
    }
  }
  std::set<std::vector<double>> distinct;
  for (const auto& [link, profile] : by_link) distinct.insert(profile);
  return {distinct.begin(), distinct.end()};
}

// Bytes that each rank sends in one period; the greatest of them.
double busiest_sender(const Plan& plan, PriceBook& book) {
  // Few distinct prices, many collectives: add up the payload of each price first.
  std::vector<std::pair<const CollectivePrice*, double>> payloads;
  for (const auto& op : plan.ops) {
    const auto* collective = std::get_if<Collective>(&op.work);
    if (collective == nullptr) continue;
    const CollectivePrice* price = &book.price(*collective);
    auto it = std::find_if(payloads.begin(), payloads.end(),
                           [&](const auto& known) { return known.first == price; });
    if (it == payloads.end()) it = payloads.insert(it, {price, 0.0});
    it->second += static_cast<double>(collective->bytes());
  }
  std::vector<double> sent(static_cast<std::size_t>(plan.ranks), 0.0);
  for (const auto& [price, bytes] : payloads) {
    for (std::size_t rank = 0; rank < sent.size(); ++rank) sent[rank] += price->sent[rank] * bytes;
  }
  return *std::max_element(sent.begin(), sent.end());
}

}  // namespace

Metrics measure(const Plan& plan, const Workload& workload, const Timeline& timeline, int warmup,
                PriceBook& book) {
  const auto& ends = timeline.period_ends;
  assert(warmup >= 0 && static_cast<std::size_t>(warmup) < ends.size() && "a period must be left");
  const auto kept = static_cast<double>(ends.size()) - warmup;
  const double steps = kept * plan.steps;
  const Seconds begin = warmup == 0 ? 0 : ends[static_cast<std::size_t>(warmup) - 1];

  Metrics metrics;
  metrics.step_time = (ends.back() - begin) / steps;
  std::vector<std::pair<Seconds, Seconds>> busy;
  for (const auto& span : timeline.spans) {
    if (span.rank != 0 || span.period < warmup) continue;
    const Work& work = plan.ops[static_cast<std::size_t>(span.op)].work;
    if (is_model_work(work)) metrics.compute += span.end - span.begin;
    if (is_collective(work)) busy.emplace_back(span.begin, span.end);
  }
  std::sort(busy.begin(), busy.end());
  metrics.compute /= steps;
  metrics.communication = covered(busy) / steps;
  metrics.exposed = std::max(0.0, metrics.step_time - metrics.compute);
  // Sums of the same durations in another order leave an ulp or two: that is nothing exposed.
  if (metrics.exposed < 1e-12 * metrics.step_time) metrics.exposed = 0;
  metrics.lower_bound = lower_bound(plan, workload, book);
  metrics.throughput = static_cast<double>(workload.batch) * plan.ranks / metrics.step_time;
  if (plan.ranks > 1) {
    metrics.collectives = static_cast<double>(plan.buckets.size()) / plan.steps;
    metrics.bytes_on_wire = busiest_sender(plan, book) / plan.steps;
  }
  return metrics;
}

Seconds lower_bound(const Plan& plan, const Workload& workload, PriceBook& book) {
  Seconds forward = 0, backward = 0, tail = 0, compute = 0;
  int updates = 0;
  for (const auto& op : plan.ops) {
    const auto* work = std::get_if<Compute>(&op.work);
    if (work == nullptr) continue;
    compute += work->seconds;
    if (work->phase == Phase::kForward) forward += work->seconds;
    if (work->phase == Phase::kBackward) backward += work->seconds;
    if (work->phase == Phase::kUpdate) tail += work->seconds;
    updates += work->phase == Phase::kUpdate;
  }
  // Updates bucket by bucket may hide behind later exchanges; a single one cannot.
  if (updates > 1) tail = 0;
  if (plan.ranks == 1 || plan.buckets.empty()) return compute / plan.steps;

  // What each bucket asks of latency and, by price, of the links.
  Bytes largest = 0;
  for (const auto& op : plan.ops) {
    const auto* collective = std::get_if<Collective>(&op.work);
    if (collective != nullptr) largest += collective->bytes();
  }
  std::vector<const CollectivePrice*> prices;
  std::vector<Seconds> latency(plan.buckets.size(), 0);
  std::vector<std::vector<std::pair<std::size_t, double>>> payloads(plan.buckets.size());
  for (const auto& op : plan.ops) {
    const auto* collective = std::get_if<Collective>(&op.work);
    if (collective == nullptr) continue;
    const CollectivePrice* price = &book.price(*collective);
    const auto known = std::find(prices.begin(), prices.end(), price);
    const auto index = static_cast<std::size_t>(known - prices.begin());
    if (known == prices.end()) prices.push_back(price);
    const auto bucket = static_cast<std::size_t>(collective->bucket);
    payloads[bucket].emplace_back(index, static_cast<double>(collective->bytes()));
    // Where tiers mix, a larger payload hides more of the latency: count what the largest leaves.
    latency[bucket] += book.latency(*collective, static_cast<double>(largest)) +
                       book.cluster().collective_overhead;
  }
  const auto links = link_profiles(prices);

  // LocalSGD averages parameters after the steps: nothing of it can hide behind them.
  const bool averaging = std::any_of(plan.ops.begin(), plan.ops.end(), [](const Op& op) {
    const auto* work = std::get_if<Compute>(&op.work);
    return work != nullptr && work->phase == Phase::kAverage;
  });

  // By tensor, latest first: a bucket's link time is shared among its tensors by their bytes, since
  // another fusion might part them.
  struct Piece {
    Seconds ready;
    Seconds latency;
    double share;
    std::size_t bucket;
  };
  std::vector<Seconds> ready(workload.tensors.size(), 0);
  Seconds clock = forward;
  for (std::size_t t = 0; t < ready.size(); ++t) {
    clock += workload.tensors[t].backward;
    ready[t] = clock;
  }
  std::vector<Piece> pieces;
  for (std::size_t b = 0; b < plan.buckets.size(); ++b) {
    const Bucket& bucket = plan.buckets[b];
    for (const int index : bucket.tensors) {
      const auto t = static_cast<std::size_t>(index);
      const bool buffer = t >= workload.tensors.size();
      const Tensor& tensor =
          buffer ? workload.buffers[t - workload.tensors.size()] : workload.tensors[t];
      const double share =
          bucket.bytes > 0 ? static_cast<double>(tensor.bytes()) / static_cast<double>(bucket.bytes)
                           : 0;
      pieces.push_back({averaging ? compute : ready[t], latency[b], share, b});
    }
  }
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const Piece& a, const Piece& b) { return a.ready > b.ready; });
  Seconds bound = averaging ? compute : forward + backward;
  std::vector<double> later(prices.size(),
                            0.0);  // payload by price, of this gradient and later ones
  for (const auto& piece : pieces) {
    for (const auto& [price, bytes] : payloads[piece.bucket]) later[price] += bytes * piece.share;
    Seconds busiest = 0;
    for (const auto& profile : links) {
      busiest =
          std::max(busiest, std::inner_product(later.begin(), later.end(), profile.begin(), 0.0));
    }
    bound = std::max(bound, piece.ready + piece.latency + busiest);
  }
  return std::max(compute, averaging ? bound : bound + tail) / plan.steps;
}

Metrics mean_of(const std::vector<WeightedMetrics>& phases, std::int64_t samples_per_step) {
  Metrics mean;
  double steps = 0;
  for (const auto& phase : phases) {
    const Metrics& m = phase.metrics;
    steps += phase.steps;
    mean.step_time += m.step_time * phase.steps;
    mean.compute += m.compute * phase.steps;
    mean.communication += m.communication * phase.steps;
    mean.exposed += m.exposed * phase.steps;
    mean.lower_bound += m.lower_bound * phase.steps;
    mean.collectives += m.collectives * phase.steps;
    mean.bytes_on_wire += m.bytes_on_wire * phase.steps;
  }
  for (double* figure : {&mean.step_time, &mean.compute, &mean.communication, &mean.exposed,
                         &mean.lower_bound, &mean.collectives, &mean.bytes_on_wire}) {
    *figure /= steps;
  }
  mean.throughput = static_cast<double>(samples_per_step) / mean.step_time;
  return mean;
}

}  // namespace syncline
