#include "core/plan/planner.h"

#include <algorithm>
#include <cassert>

#include "core/collective/price.h"
#include "core/compress/sparsity.h"
#include "core/plan/compression.h"
#include "core/plan/exchanges.h"
#include "core/plan/forward.h"
#include "core/plan/fusion.h"
#include "core/plan/hierarchy.h"
#include "core/plan/local_sgd.h"
#include "core/plan/priority.h"

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
    return add(kComputeStream, Compute{phase, seconds, first, last}, std::move(after));
  }

  // Buckets go round the communication streams, the order in which frameworks use their
  // communicators.
  StreamId stream_of(std::size_t bucket) const {
    if (!strategy_.overlap) return kComputeStream;
    return 1 + static_cast<StreamId>(bucket % static_cast<std::size_t>(strategy_.streams));
  }

  // What comes ahead of a bucket's way over the network, on the compute stream. Gives its last
  // operation, or `ready` where there is nothing to do.
  OpId prepare(std::size_t index, OpId ready) {
    const Bucket& bucket = plan.buckets[index];
    if (plan.ranks == 1) return ready;
    if (const Seconds seconds = copy_time(bucket); seconds > 0) {
      ready = add(kComputeStream, Copy{static_cast<int>(index), seconds, true});
    }
    if (bucket.codec != nullptr) {
      ready = add(kComputeStream, Encode{static_cast<int>(index), encode_time(bucket)});
    }
    return ready;
  }

  // The collectives one after the other on a stream, beginning once all of `after` is done. Gives
  // the last one, or the last of `after` where there are none.
  OpId send(const std::vector<Collective>& collectives, StreamId stream, std::vector<OpId> after) {
    OpId last = after.back();
    for (const auto& collective : collectives) {
      // Stream order already holds an operation back until its predecessor there is done.
      std::erase_if(
          after, [&](OpId id) { return plan.ops[static_cast<std::size_t>(id)].stream == stream; });
      last = add(stream, collective, std::move(after));
      after = {last};
    }
    return last;
  }

  // What follows a bucket's last collective on its stream. Gives the operation with which it is in.
  OpId receive(std::size_t index, OpId last) {
    const Bucket& bucket = plan.buckets[index];
    if (plan.ranks == 1) return last;
    const StreamId stream = plan.ops[static_cast<std::size_t>(last)].stream;
    if (bucket.codec != nullptr) {
      last = add(stream, Decode{static_cast<int>(index), decode_time(bucket)});
    }
    if (strategy_.host_sync && cluster_.device.host_sync > 0) {
      last = add(stream, HostSync{cluster_.device.host_sync});
    }
    return last;
  }

  // Back out of the bucket, on the compute stream. Gives its operation, or `arrived` where nothing
  // is copied.
  OpId copy_out(std::size_t index, OpId arrived) {
    const Seconds seconds = copy_time(plan.buckets[index]);
    if (plan.ranks == 1 || seconds <= 0) return arrived;
    return add(kComputeStream, Copy{static_cast<int>(index), seconds, false}, {arrived});
  }

  // One bucket's way over the network in one go, beginning once `ready` is done. Gives its last
  // operation.
  OpId exchange(std::size_t index, OpId ready) {
    if (plan.ranks == 1) return ready;
    const auto collectives = collectives_of(plan.buckets[index], static_cast<int>(index));
    const OpId prepared = prepare(index, ready);
    return receive(index, send(collectives, stream_of(index), {prepared}));
  }

  // The collective of one half of a split exchange.
  Collective half_of(CollectiveKind kind, std::size_t index) const {
    const Bucket& bucket = plan.buckets[index];
    const Bytes unit =
        bucket.codec == nullptr ? size_of(bucket.dtype) : bucket.codec->encoded_bytes(1, 1);
    const std::int64_t elements =
        bucket.codec == nullptr ? (bucket.padded_bytes + unit - 1) / unit : bucket.elements;
    return {kind,
            find_algorithm(strategy_.algorithm),
            world_group(plan.ranks),
            elements,
            unit,
            static_cast<int>(index)};
  }

  std::vector<Collective> collectives_of(const Bucket& bucket, int id) const {
    const int ranks = plan.ranks;
    if (subgroup > 1) {
      const Bytes unit = size_of(bucket.dtype);
      return {{CollectiveKind::kAllReduce, find_algorithm(strategy_.algorithm),
               block_groups(ranks, subgroup), (bucket.padded_bytes + unit - 1) / unit, unit, id}};
    }
    if (bucket.sparse) {
      const Tensor& tensor = workload_.tensors[static_cast<std::size_t>(bucket.tensors.front())];
      const std::int64_t rows = tensor.shape.empty() ? 1 : tensor.shape.front();
      const Bytes row = tensor.bytes() / rows + kRowIndexBytes;
      return {all_gather_by(strategy_, ranks, bucket.kept * ranks, row, id)};
    }
    if (bucket.codec != nullptr && bucket.codec->sparse) {
      const Bytes pair = bucket.codec->encoded_bytes(bucket.elements, bucket.kept) / bucket.kept;
      return {all_gather_by(strategy_, ranks, bucket.kept * ranks, pair, id)};
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

  // One way between the gradients' own memory and the bucket's: what is read and what is written.
  Seconds copy_time(const Bucket& bucket) const {
    Bytes own = 0;
    for (const int index : bucket.tensors) {
      const auto t = static_cast<std::size_t>(index);
      if (t < workload_.tensors.size()) own += workload_.tensors[t].bytes();
    }
    const bool cast = own != bucket.bytes && strategy_.fusion.to_fp32;
    if (bucket.sparse || (!strategy_.bucket_copies && !cast)) return 0;
    return memory_time(static_cast<double>(own + bucket.bytes));
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
  int step = 0;      // of the period, for the operations that follow
  int subgroup = 1;  // above 1: gradients are all-reduced in groups of this many ranks

 private:
  const Workload& workload_;
  const Cluster& cluster_;
  const Strategy& strategy_;
};

// The backward pass, each bucket's exchange (or the first half of a split one) as soon as its last
// gradient is there, or its tick has come, or it is the most urgent. Buckets [begin, ...) of the
// plan. Gives the last operation of each.
class Backward {
 public:
  Backward(Builder& build, const Workload& workload, const Cluster& cluster,
           const Strategy& strategy)
      : build_(build), workload_(workload), cluster_(cluster), strategy_(strategy) {}

  std::vector<OpId> run(std::size_t begin, const Exchanges& exchanges,
                        const std::vector<char>& split) {
    const std::size_t count = exchanges.buckets.size();
    const bool urgent = strategy_.priority == Strategy::Priority::kLayer && build_.plan.ranks > 1;
    std::vector<OpId> done(count);
    OpId segment = static_cast<OpId>(build_.plan.ops.size()) - 1;  // the forward pass
    int next = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const int ready = exchanges.buckets[i].ready;
      if (ready >= next) segment = compute(next, ready);
      next = std::max(next, ready + 1);
      if (urgent) {
        done[i] = build_.prepare(begin + i, segment);
      } else {
        std::vector<OpId> after{segment};
        if (!exchanges.releases.empty()) after.push_back(tick(exchanges.releases[i]));
        done[i] = first_half(begin + i, begin + i, std::move(after), split[i] != 0, true);
      }
    }
    if (!urgent) return done;
    std::size_t place = 0;
    for (const int i : order(begin, exchanges, split)) {
      const auto b = static_cast<std::size_t>(i);
      done[b] = first_half(begin + b, place++, {done[b]}, split[b] != 0, false);
    }
    return done;
  }

  // The first wait for a tick, or -1: it begins with the step.
  OpId first_tick() const { return first_tick_; }

 private:
  OpId compute(int first, int last) {
    Seconds seconds = 0;
    for (int t = first; t <= last; ++t) {
      seconds += workload_.tensors[static_cast<std::size_t>(t)].backward;
    }
    clock_ += seconds;
    return build_.compute(Phase::kBackward, seconds, first, last);
  }

  OpId first_half(std::size_t bucket, std::size_t place, std::vector<OpId> after, bool split,
                  bool prepare) {
    if (build_.plan.ranks == 1) return after.front();
    if (prepare) after.front() = build_.prepare(bucket, after.front());
    const StreamId stream = build_.stream_of(place);
    if (split) {
      return build_.send({build_.half_of(CollectiveKind::kReduceScatter, bucket)}, stream,
                         std::move(after));
    }
    const auto collectives =
        build_.collectives_of(build_.plan.buckets[bucket], static_cast<int>(bucket));
    return build_.receive(bucket, build_.send(collectives, stream, std::move(after)));
  }

  // The tick at `time` from the step's begin, on a stream of the framework's own.
  OpId tick(Seconds time) {
    if (first_tick_ < 0) tick_stream_ = build_.plan.streams++;
    if (first_tick_ < 0 || time > tick_time_) {
      tick_ = build_.add(tick_stream_, Wait{time - tick_time_});
      tick_time_ = time;
    }
    if (first_tick_ < 0) first_tick_ = tick_;
    return tick_;
  }

  // Which bucket goes when, as the prices foresee it.
  std::vector<int> order(std::size_t begin, const Exchanges& exchanges,
                         const std::vector<char>& split) {
    PriceBook book(cluster_);
    std::vector<Urgent> items;
    Seconds clock = 0;
    int next = 0;
    for (std::size_t i = 0; i < exchanges.buckets.size(); ++i) {
      const Bucket& bucket = exchanges.buckets[i];
      for (; next <= bucket.ready; ++next) {
        clock += workload_.tensors[static_cast<std::size_t>(next)].backward;
      }
      if (bucket.codec != nullptr) clock += build_.encode_time(bucket);
      // What the forward pass needs first became ready last.
      Urgent item{clock, -bucket.ready, 0, bucket.bytes};
      if (split[i] != 0) {
        item.duration = book.time(build_.half_of(CollectiveKind::kReduceScatter, begin + i));
      } else {
        for (const auto& collective : build_.collectives_of(bucket, static_cast<int>(begin + i))) {
          item.duration += book.time(collective);
        }
      }
      items.push_back(item);
    }
    return urgent_first(items, strategy_.credit);
  }

  Builder& build_;
  const Workload& workload_;
  const Cluster& cluster_;
  const Strategy& strategy_;
  Seconds clock_ = 0;
  StreamId tick_stream_ = 0;
  OpId first_tick_ = -1;
  OpId tick_ = -1;
  Seconds tick_time_ = 0;
};

// One step in which gradients are summed. In order: the forward pass (by layers where it may begin
// before all parameters are in, each layer's update ahead of it), the backward pass with its
// exchanges, the second halves of split exchanges, the update.
class StepPlan {
 public:
  StepPlan(const Workload& workload, const Cluster& cluster, const Strategy& strategy,
           const TrainingPoint& point)
      : workload_(workload),
        cluster_(cluster),
        strategy_(strategy),
        build_(workload, cluster, strategy),
        exchanges_(gradient_exchanges(workload, cluster, strategy, point)),
        sharded_(strategy.exchange == Strategy::Exchange::kSharded && build_.plan.ranks > 1),
        last_(static_cast<int>(workload.tensors.size()) - 1) {
    build_.plan.buckets = exchanges_.buckets;
    if (sharded_) {
      for (auto& bucket : gather_buckets(workload, strategy)) build_.plan.buckets.push_back(bucket);
    }
    find_carriers();
  }

  Plan make() {
    build_.plan.ops.reserve(3 * build_.plan.buckets.size() + 2);
    forward();
    Backward backward(build_, workload_, cluster_, strategy_);
    const auto sent = backward.run(0, exchanges_, split_);
    arrived_.assign(build_.plan.buckets.size(), -1);
    std::copy(sent.begin(), sent.end(), arrived_.begin());
    if (sharded_) {
      gather(update_shards(sent));
    } else {
      if (strategy_.exchange == Strategy::Exchange::kDecoupled) gather(arrived_);
      for (std::size_t b = 0; b < gradients(); ++b) arrived_[b] = build_.copy_out(b, arrived_[b]);
      if (!strategy_.cross_step) update();
    }
    for (const auto& [op, carriers] : leads_) {
      auto& after = build_.plan.ops[static_cast<std::size_t>(op)].after_previous;
      for (const auto b : carriers) after.push_back(arrived_[b]);
      std::sort(after.begin(), after.end());
      after.erase(std::unique(after.begin(), after.end()), after.end());
    }
    begin_ticks_with_the_step(backward.first_tick());
    return std::move(build_.plan);
  }

 private:
  const std::vector<Bucket>& buckets() const { return build_.plan.buckets; }
  std::size_t gradients() const { return exchanges_.buckets.size(); }

  // Which exchanges are split, and by which buckets each tensor's parameters come in.
  void find_carriers() {
    carriers_.resize(workload_.tensors.size());
    for (std::size_t b = gradients(); b < buckets().size(); ++b) {
      for (const int index : buckets()[b].tensors) {
        carriers_[static_cast<std::size_t>(index)].push_back(b);
      }
    }
    const bool any = strategy_.exchange != Strategy::Exchange::kAllReduce && build_.plan.ranks > 1;
    for (std::size_t b = 0; b < gradients(); ++b) {
      const Bucket& bucket = buckets()[b];
      const auto first = static_cast<std::size_t>(bucket.tensors.front());
      const bool gathered_apart =
          !carriers_[first].empty() && carriers_[first].front() >= gradients();
      const bool apart = buckets().size() > gradients();
      split_.push_back(any && !bucket.sparse && (!apart || gathered_apart) ? 1 : 0);
      if (gathered_apart) continue;
      for (const int index : bucket.tensors)
        carriers_[static_cast<std::size_t>(index)].push_back(b);
    }
  }

  double share_of(std::size_t b) const {
    const double whole =
        static_cast<double>(buckets()[b].bytes) / static_cast<double>(gradient_bytes(workload_));
    return sharded_ && split_[b] != 0 ? whole / build_.plan.ranks : whole;
  }

  void forward() {
    if (!strategy_.cross_step) {
      const OpId whole = build_.compute(Phase::kForward, workload_.forward);
      if (!sharded_) return;
      leads_.push_back({whole, {}});
      for (const auto& carriers : carriers_) {
        leads_.back().second.insert(leads_.back().second.end(), carriers.begin(), carriers.end());
      }
      return;
    }
    std::vector<char> seen(buckets().size(), 0);
    std::vector<std::size_t> awaited;  // by the open segment
    ForwardLayer open{0, -1, 0};
    const auto close = [&] {
      if (open.last < open.first) return;
      OpId lead = -1;
      double share = 0;
      for (const auto b : awaited) share += b < gradients() ? share_of(b) : 0;
      if (!sharded_ && workload_.update > 0 && share > 0) {
        lead = build_.compute(Phase::kUpdate, workload_.update * share, open.first, open.last);
      }
      const OpId segment = build_.compute(Phase::kForward, open.seconds, open.first, open.last);
      if (!awaited.empty()) leads_.push_back({lead < 0 ? segment : lead, awaited});
      awaited.clear();
    };
    for (const auto& layer : forward_layers(workload_)) {
      std::vector<std::size_t> fresh;
      for (int t = layer.first; t <= layer.last; ++t) {
        for (const auto b : carriers_[static_cast<std::size_t>(t)]) {
          if (std::exchange(seen[b], 1) == 0) fresh.push_back(b);
        }
      }
      if (fresh.empty() && open.last >= open.first) {
        open.first = layer.first;
        open.seconds += layer.seconds;
        continue;
      }
      close();
      open = layer;
      awaited = std::move(fresh);
    }
    close();
  }

  // Each rank updates its shards. Gives by bucket the operation with which it is updated.
  std::vector<OpId> update_shards(const std::vector<OpId>& sent) {
    std::vector<OpId> updated(buckets().size(), -1);
    if (strategy_.update == Strategy::Update::kAfterAll) {
      double share = 0;
      for (std::size_t b = 0; b < gradients(); ++b) share += share_of(b);
      const OpId all = build_.compute(Phase::kUpdate, workload_.update * share, 0, last_, sent);
      std::fill(updated.begin(), updated.end(), all);
    } else {
      for (std::size_t b = 0; b < gradients(); ++b) {
        const auto& tensors = buckets()[b].tensors;
        updated[b] = build_.compute(Phase::kUpdate, workload_.update * share_of(b), tensors.front(),
                                    tensors.back(), {sent[b]});
      }
    }
    for (std::size_t b = 0; b < gradients(); ++b) arrived_[b] = updated[b];
    return updated;
  }

  // The second halves, in the order in which the next forward pass needs them; `after`: by bucket,
  // what each waits for.
  void gather(const std::vector<OpId>& after) {
    std::vector<std::size_t> order;
    for (std::size_t b = 0; b < buckets().size(); ++b) {
      const bool apart = buckets().size() > gradients();
      if (b < gradients() ? !apart && split_[b] != 0 : true) order.push_back(b);
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return buckets()[a].ready > buckets()[b].ready;
    });
    const std::vector<OpId> before = after;  // arrived_ changes below
    std::size_t place = 0;
    for (const auto b : order) {
      std::vector<OpId> awaited;
      if (b < gradients()) {
        awaited = {before[b]};
      } else {
        awaited = updates_of(b, before);
      }
      const Collective half = build_.half_of(CollectiveKind::kAllGather, b);
      arrived_[b] = build_.receive(b, build_.send({half}, build_.stream_of(place++), awaited));
    }
  }

  // The updates of the gradients' buckets that hold a tensor of gather bucket b.
  std::vector<OpId> updates_of(std::size_t b, const std::vector<OpId>& updated) const {
    std::vector<OpId> list;
    for (std::size_t g = 0; g < gradients(); ++g) {
      const auto& mine = buckets()[b].tensors;
      const bool meets = std::any_of(
          buckets()[g].tensors.begin(), buckets()[g].tensors.end(),
          [&](int index) { return std::find(mine.begin(), mine.end(), index) != mine.end(); });
      if (meets) list.push_back(updated[g]);
    }
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    return list;
  }

  void update() {
    if (strategy_.update == Strategy::Update::kAfterAll) {
      build_.compute(Phase::kUpdate, workload_.update, 0, last_, arrived_);
      return;
    }
    for (std::size_t b = 0; b < gradients(); ++b) {
      const auto& tensors = buckets()[b].tensors;
      build_.compute(Phase::kUpdate, workload_.update * share_of(b), tensors.front(),
                     tensors.back(), {arrived_[b]});
    }
  }

  // Ticks are counted from the step's begin, which is the end of the last one's computation.
  void begin_ticks_with_the_step(OpId first_tick) {
    if (first_tick < 0) return;
    auto last = static_cast<OpId>(build_.plan.ops.size()) - 1;
    while (build_.plan.ops[static_cast<std::size_t>(last)].stream != kComputeStream) --last;
    build_.plan.ops[static_cast<std::size_t>(first_tick)].after_previous = {last};
  }

  const Workload& workload_;
  const Cluster& cluster_;
  const Strategy& strategy_;
  Builder build_;
  Exchanges exchanges_;
  bool sharded_;
  int last_;                                        // tensor
  std::vector<char> split_;                         // by bucket of gradients
  std::vector<std::vector<std::size_t>> carriers_;  // by tensor
  std::vector<OpId> arrived_;                       // by bucket
  // Operations that wait for buckets of the step before.
  std::vector<std::pair<OpId, std::vector<std::size_t>>> leads_;
};

// k local steps, then the parameters are averaged: the host waits for the computation, every
// bucket is summed, the host waits again, and the mean is taken (two reads and a write).
Plan local_plan(const Workload& workload, const Cluster& cluster, const Strategy& strategy,
                std::int64_t period) {
  Builder build(workload, cluster, strategy);
  build.plan.steps = static_cast<int>(period);
  const int last = static_cast<int>(workload.tensors.size()) - 1;
  OpId updated = 0;
  // Post-local SGD: the ranks of a group go on exchanging their gradients.
  const bool grouped = strategy.local_sgd.subgroup > 1 && build.plan.ranks > 1;
  Exchanges exchanges;
  if (grouped) exchanges = gradient_exchanges(workload, cluster, strategy, {});
  const std::vector<char> whole(exchanges.buckets.size(), 0);
  build.subgroup = strategy.local_sgd.subgroup;
  for (int step = 0; step < build.plan.steps; ++step) {
    build.step = step;
    build.compute(Phase::kForward, workload.forward);
    std::vector<OpId> exchanged;
    if (grouped) {
      const auto begin = build.plan.buckets.size();
      auto& buckets = build.plan.buckets;
      buckets.insert(buckets.end(), exchanges.buckets.begin(), exchanges.buckets.end());
      exchanged = Backward(build, workload, cluster, strategy).run(begin, exchanges, whole);
      for (std::size_t b = 0; b < exchanged.size(); ++b) {
        exchanged[b] = build.copy_out(begin + b, exchanged[b]);
      }
    } else {
      build.compute(Phase::kBackward, backward_time(workload), 0, last);
    }
    updated = build.compute(Phase::kUpdate, workload.update, 0, last, std::move(exchanged));
  }
  if (build.plan.ranks == 1) return build.plan;

  Fusion fusion = strategy.fusion;
  if (grouped) {
    fusion = Fusion{};
    fusion.rule = Fusion::Rule::kOne;
  }
  build.subgroup = 1;
  const auto first = build.plan.buckets.size();
  for (auto& bucket : parameter_buckets(workload, fusion)) build.plan.buckets.push_back(bucket);
  const Seconds sync = cluster.device.host_sync;
  if (sync > 0) updated = build.add(kComputeStream, HostSync{sync});
  std::vector<OpId> done;
  double bytes = 0;
  for (std::size_t i = first; i < build.plan.buckets.size(); ++i) {
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

Plan make_plan(const Workload& workload, const Cluster& cluster, const Strategy& strategy,
               const TrainingPoint& point) {
  const LocalSgd& local = strategy.local_sgd;
  const bool warming_up =
      local.warmup_gradients && point.period == 0 && point.step < local.begin_step;
  if (!local.enabled || warming_up) return StepPlan(workload, cluster, strategy, point).make();
  const std::int64_t own =
      point.step < strategy.local_sgd.begin_step ? 1 : strategy.local_sgd.period;
  return local_plan(workload, cluster, strategy, point.period > 0 ? point.period : own);
}

namespace {

std::vector<TrainingPhase> phases_of(const Strategy& strategy, const Training& training) {
  if (!training.steps) {
    TrainingPoint point;
    if (training.step) point.step = *training.step;
    return {{point, 1}};
  }
  const std::int64_t first = training.from;
  const std::int64_t end = first + *training.steps;
  std::vector<TrainingPhase> phases;
  if (strategy.local_sgd.enabled) {
    Training rest = training;
    if (strategy.local_sgd.warmup_gradients) {
      // Steps count from 1: those up to begin_step exchange gradients.
      const std::int64_t warm =
          std::clamp<std::int64_t>(strategy.local_sgd.begin_step - first, 0, *training.steps);
      if (warm > 0) phases.push_back({{0, 0}, warm});
      rest.from += warm;
      *rest.steps -= warm;
      if (*rest.steps == 0) return phases;
    }
    for (const auto& share : period_shares(strategy.local_sgd, rest)) {
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

}  // namespace

std::vector<TrainingPhase> training_phases(const Strategy& strategy, const Training& training) {
  auto phases = phases_of(strategy, training);
  if (strategy.fusion.cycle <= 0) return phases;
  // A step begins anywhere in a cycle: the mean over its moments.
  std::vector<TrainingPhase> ticked;
  for (const auto& phase : phases) {
    for (int tick = 0; tick < kTickPhases; ++tick) {
      ticked.push_back(phase);
      ticked.back().point.tick_phase = tick;
    }
  }
  return ticked;
}

}  // namespace syncline
