#include "core/plan/planner.h"

#include <algorithm>

#include "core/compress/sparsity.h"
#include "core/plan/compression.h"
#include "core/plan/compute_fusion.h"
#include "core/plan/exchange.h"
#include "core/plan/fusion.h"
#include "core/plan/hierarchy.h"
#include "core/plan/local_sgd.h"

namespace syncline {
namespace {

// Rows of a sparse gradient travel with an int64 row index each.
constexpr Bytes kRowIndexBytes = 8;

// Puts a plan together: an operation goes behind its stream's last one.
class Builder {
 public:
  Builder(const Workload& workload, const Cluster& cluster, const Strategy& strategy)
      : workload_(workload), cluster_(cluster), strategy_(strategy) {
    plan.ranks = cluster.ranks();
    plan.streams = strategy.overlap ? 1 + strategy.streams : 1;
  }

  OpId add(StreamId stream, const Work& work, std::vector<OpId> after = {}) {
    plan.ops.push_back({stream, std::move(after), work, step});
    return static_cast<OpId>(plan.ops.size() - 1);
  }

  OpId compute(Phase phase, Seconds seconds, int first = 0, int last = -1,
               std::vector<OpId> after = {}) {
    return add(kComputeStream, Compute{phase, seconds * stretch_, first, last}, std::move(after));
  }

  // Begins a training step: forward, behind what data-parallel running costs the host.
  OpId forward() {
    if (overhead_ > 0) add(kComputeStream, HostSync{overhead_});
    return compute(Phase::kForward, workload_.forward);
  }

  // Buckets go round the communication streams, the order in which frameworks use their
  // communicators.
  StreamId stream_of(std::size_t bucket) const {
    if (!strategy_.overlap) return kComputeStream;
    return 1 + static_cast<StreamId>(bucket % static_cast<std::size_t>(strategy_.streams));
  }

  // One bucket's way over the network, beginning once `ready` is done. Gives its last operation.
  OpId exchange(std::size_t index, OpId ready) {
    const Bucket& bucket = plan.buckets[index];
    const auto id = static_cast<int>(index);
    const StreamId stream = stream_of(index);
    OpId last = ready;
    if (plan.ranks == 1) return last;
    if (bucket.codec != nullptr) {
      last = add(kComputeStream, Encode{id, encode_time(bucket)});
    }
    for (auto& collective : collectives_of(bucket, id)) {
      // Stream order already holds an operation back until its predecessor there is done.
      const bool same_stream = plan.ops[static_cast<std::size_t>(last)].stream == stream;
      last = add(stream, collective, same_stream ? std::vector<OpId>{} : std::vector<OpId>{last});
    }
    if (bucket.codec != nullptr) last = add(stream, Decode{id, decode_time(bucket)});
    return last;
  }

  std::vector<Collective> collectives_of(const Bucket& bucket, int id) const {
    const int ranks = plan.ranks;
    if (bucket.sparse) {
      const Tensor& tensor = workload_.tensors[static_cast<std::size_t>(bucket.tensors.front())];
      const std::int64_t rows = tensor.shape.empty() ? 1 : tensor.shape.front();
      const Bytes row = tensor.bytes() / rows + kRowIndexBytes;
      return {all_gather_by(strategy_, cluster_, bucket.kept * ranks, row, id)};
    }
    if (bucket.codec != nullptr && bucket.codec->sparse) {
      const Bytes pair = bucket.codec->encoded_bytes(bucket.elements, bucket.kept) / bucket.kept;
      return {all_gather_by(strategy_, cluster_, bucket.kept * ranks, pair, id)};
    }
    if (bucket.codec != nullptr) {
      const Bytes bytes = bucket.codec->encoded_bytes(bucket.elements, bucket.kept);
      return all_reduce_by(strategy_, cluster_, bucket.elements, bytes / bucket.elements, id);
    }
    const Bytes unit = size_of(bucket.dtype);
    return all_reduce_by(strategy_, cluster_, (bucket.padded_bytes + unit - 1) / unit, unit, id);
  }

  Seconds memory_time(double bytes) const {
    return cluster_.device.memory > 0 ? bytes / cluster_.device.memory : 0;
  }

  Seconds encode_time(const Bucket& bucket) const {
    const auto launches = static_cast<double>(strategy_.compression.encode_launches);
    return launches * cluster_.device.launch +
           memory_time(
               bucket.codec->encode_traffic(bucket.elements, bucket.kept, size_of(bucket.dtype)));
  }

  Seconds decode_time(const Bucket& bucket) const {
    const auto launches = static_cast<double>(strategy_.compression.decode_launches);
    return launches * cluster_.device.launch +
           memory_time(bucket.codec->decode_traffic(bucket.elements, bucket.kept, plan.ranks,
                                                    size_of(bucket.dtype)));
  }

  Plan plan;
  int step = 0;  // of the period, for the operations that follow

 private:
  const Workload& workload_;
  const Cluster& cluster_;
  const Strategy& strategy_;
  const double stretch_ = cluster_.compute_stretch();
  const Seconds overhead_ = cluster_.step_overhead();
};

std::vector<const Tensor*> pointers(const std::vector<Tensor>& tensors) {
  std::vector<const Tensor*> list;
  list.reserve(tensors.size());
  for (const auto& tensor : tensors) list.push_back(&tensor);
  return list;
}

// Gradients as buckets, in the order in which they become ready. Sparse gradients, and those that
// a sparse codec takes, travel alone; the rest goes by the fusion rule.
std::vector<Bucket> gradient_buckets(const Workload& workload, const Strategy& strategy,
                                     std::int64_t step) {
  const Codec* codec = codec_at(strategy.compression, step);
  const auto tensors = pointers(workload.tensors);
  std::vector<Bucket> buckets;
  std::vector<int> candidates;
  candidates.reserve(tensors.size());
  for (int i = 0; i < static_cast<int>(tensors.size()); ++i) {
    const Tensor& tensor = *tensors[static_cast<std::size_t>(i)];
    if (!tensor.sparse && !compressed_alone(codec, strategy.compression, tensor)) {
      candidates.push_back(i);
      continue;
    }
    Bucket bucket = buckets_of(tensors, {i}, strategy.fusion).front();
    bucket.sparse = tensor.sparse;
    if (tensor.sparse) bucket.kept = tensor.sparse_rows;
    buckets.push_back(std::move(bucket));
  }
  for (const auto& group : fuse(tensors, candidates, strategy.fusion)) {
    for (auto& bucket : buckets_of(tensors, group, strategy.fusion)) {
      buckets.push_back(std::move(bucket));
    }
  }
  std::stable_sort(buckets.begin(), buckets.end(),
                   [](const Bucket& a, const Bucket& b) { return a.ready < b.ready; });
  if (codec != nullptr) {
    for (auto& bucket : buckets) {
      const Tensor& first = *tensors[static_cast<std::size_t>(bucket.tensors.front())];
      compress(bucket, codec, strategy.compression, first, step);
    }
  }
  return buckets;
}

// Parameters, first layer first, then the statistics without a gradient: what LocalSGD averages.
std::vector<Bucket> parameter_buckets(const Workload& workload, const Fusion& fusion) {
  auto tensors = pointers(workload.tensors);
  for (const auto& buffer : workload.buffers) tensors.push_back(&buffer);
  std::vector<int> candidates;
  for (int i = static_cast<int>(workload.tensors.size()) - 1; i >= 0; --i) candidates.push_back(i);
  for (auto i = workload.tensors.size(); i < tensors.size(); ++i) {
    candidates.push_back(static_cast<int>(i));
  }
  std::vector<Bucket> buckets;
  for (const auto& group : fuse(tensors, candidates, fusion)) {
    for (auto& bucket : buckets_of(tensors, group, fusion)) buckets.push_back(std::move(bucket));
  }
  return buckets;
}

// One step in which gradients are summed: forward, backward gradient by gradient, each bucket's
// exchange as soon as its last gradient is there, update.
Plan synchronous_plan(const Workload& workload, const Cluster& cluster, const Strategy& strategy,
                      std::int64_t step) {
  Builder build(workload, cluster, strategy);
  build.plan.buckets = gradient_buckets(workload, strategy, step);
  const auto& buckets = build.plan.buckets;
  build.plan.ops.reserve(3 * buckets.size() + 2);

  OpId segment = build.forward();
  std::vector<OpId> done;
  done.reserve(buckets.size());
  int next = 0;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    if (buckets[i].ready >= next) {
      Seconds seconds = 0;
      for (int t = next; t <= buckets[i].ready; ++t) {
        seconds += workload.tensors[static_cast<std::size_t>(t)].backward;
      }
      segment = build.compute(Phase::kBackward, seconds, next, buckets[i].ready);
      next = buckets[i].ready + 1;
    }
    done.push_back(build.exchange(i, segment));
  }

  if (strategy.update == Strategy::Update::kAfterAll) {
    const int last = static_cast<int>(workload.tensors.size()) - 1;
    build.compute(Phase::kUpdate, workload.update, 0, last, std::move(done));
    return std::move(build.plan);
  }
  const auto all = static_cast<double>(gradient_bytes(workload));
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    const double share = static_cast<double>(buckets[i].bytes) / all;
    build.compute(Phase::kUpdate, workload.update * share, buckets[i].tensors.front(),
                  buckets[i].tensors.back(), {done[i]});
  }
  return std::move(build.plan);
}

// k local steps, then the parameters are averaged: the host waits for the computation, every
// bucket is summed, the host waits again, and the mean is taken (two reads and a write).
Plan local_plan(const Workload& workload, const Cluster& cluster, const Strategy& strategy,
                std::int64_t period) {
  Builder build(workload, cluster, strategy);
  build.plan.steps = static_cast<int>(period);
  const int last = static_cast<int>(workload.tensors.size()) - 1;
  OpId updated = 0;
  for (int step = 0; step < build.plan.steps; ++step) {
    build.step = step;
    build.forward();
    build.compute(Phase::kBackward, backward_time(workload), 0, last);
    updated = build.compute(Phase::kUpdate, workload.update, 0, last);
  }
  if (build.plan.ranks == 1) return build.plan;

  build.plan.buckets = parameter_buckets(workload, strategy.fusion);
  const Seconds sync = cluster.device.host_sync;
  if (sync > 0) updated = build.add(kComputeStream, HostSync{sync});
  std::vector<OpId> done;
  double bytes = 0;
  for (std::size_t i = 0; i < build.plan.buckets.size(); ++i) {
    bytes += static_cast<double>(build.plan.buckets[i].bytes);
    done.push_back(build.exchange(i, updated));
  }
  if (sync > 0) {
    const OpId synced = build.add(kComputeStream, HostSync{sync}, std::move(done));
    done = {synced};
  }
  build.compute(Phase::kAverage, build.memory_time(3 * bytes), 0, last, std::move(done));
  return std::move(build.plan);
}

}  // namespace

Exchange exchange_of(const Bucket& bucket, const Workload& workload, const Cluster& cluster,
                     const Strategy& strategy) {
  const Builder build(workload, cluster, strategy);
  Exchange exchange;
  if (build.plan.ranks == 1) return exchange;
  exchange.collectives = build.collectives_of(bucket, 0);
  if (bucket.codec == nullptr) return exchange;
  exchange.encode = build.encode_time(bucket);
  exchange.decode = build.decode_time(bucket);
  return exchange;
}

Plan make_plan(const Workload& workload, const Cluster& cluster, const Strategy& strategy,
               const TrainingPoint& point) {
  if (const auto fused = fused_workload(workload, cluster.device, strategy.compute_fusion)) {
    return make_plan(*fused, cluster, strategy, point);
  }
  if (!strategy.local_sgd.enabled) {
    return synchronous_plan(workload, cluster, strategy, point.step);
  }
  const std::int64_t own =
      point.step < strategy.local_sgd.begin_step ? 1 : strategy.local_sgd.period;
  return local_plan(workload, cluster, strategy, point.period > 0 ? point.period : own);
}

std::vector<TrainingPhase> training_phases(const Strategy& strategy, const Training& training) {
  if (!training.steps) {
    TrainingPoint point;
    if (training.step) point.step = *training.step;
    return {{point, 1}};
  }
  const std::int64_t first = training.from;
  const std::int64_t end = first + *training.steps;
  std::vector<TrainingPhase> phases;
  if (strategy.local_sgd.enabled) {
    for (const auto& share : period_shares(strategy.local_sgd, training)) {
      phases.push_back({{end, share.period}, share.steps});
    }
    return phases;
  }
  std::vector<std::int64_t> cuts{first};
  if (!strategy.compression.codec.empty() && find_codec(strategy.compression.codec)->sparse) {
    for (const auto change : sparsity_changes(strategy.compression)) {
      if (change > first && change < end) cuts.push_back(change);
    }
  }
  cuts.push_back(end);
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    phases.push_back({{cuts[i], 0}, cuts[i + 1] - cuts[i]});
  }
  return phases;
}

}  // namespace syncline
