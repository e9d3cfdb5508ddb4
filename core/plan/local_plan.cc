#include "core/plan/local_plan.h"

#include <algorithm>
#include <utility>

#include "core/base/index.h"
#include "core/plan/builder.h"
#include "core/plan/step_plan.h"

namespace syncline::plan {
namespace {

// Returns the groups of one block of `block` ranks, in every block.
collective::Groups in_every_block(collective::Groups groups, int block, int ranks) {
  const int blocks = ranks / block;
  if (groups.count == 1) {
    groups.group_step = block;
  } else if (groups.count * groups.group_step != block) {
    groups.run = groups.count;
    groups.run_step = block;
  }
  groups.count *= blocks;
  return groups;
}

// Returns one step of a rank, or of a group that exchanges gradients in it.
Plan local_step(const Workload& workload, const Cluster& cluster, const Strategy& strategy,
                const Communication& communication) {
  const int group = strategy.local_sgd.subgroup;
  if (group > 1 && cluster.ranks() > 1) {
    Plan plan = step_plan(workload, communication);
    for (Op& op : plan.ops) {
      auto* collective = std::get_if<collective::Collective>(&op.work);
      if (collective == nullptr) continue;
      collective->groups = in_every_block(collective->groups, group, cluster.ranks());
    }
    return plan;
  }
  Builder build(workload, communication);
  const int last = static_cast<int>(workload.tensors.size()) - 1;
  build.begin_step();
  build.compute(Phase::kForward, workload.forward);
  build.earlier_micro_batches();
  build.compute(Phase::kBackward, backward_time(workload), 0, last);
  build.host_gap({});
  build.compute(Phase::kUpdate, workload.update, 0, last);
  return std::move(build.plan);
}

class LocalPlan {
 public:
  LocalPlan(const Workload& workload, const Cluster& cluster, const Strategy& strategy,
            const Communication& communication)
      : workload_(workload),
        host_sync_(cluster.device.host_sync),
        local_(strategy.local_sgd),
        build_(workload, communication) {
    build_.plan.ranks = cluster.ranks();
    build_.plan.replicas = cluster.ranks();
    build_.plan.outer = local_.outer;
    if (local_.outer.any()) build_.plan.replicas /= local_.subgroup;
  }

  Plan make(const Plan& step, int period, std::vector<std::vector<BucketExchange>> fragments) {
    build_.plan.steps = period;
    build_.plan.streams = step.streams;
    // Fragments that travel during training must not delay the gradients inside a group.
    if (local_.delay > 0) own_stream_ = build_.plan.streams++;
    arrived_.resize(fragments.size());
    const int count = static_cast<int>(fragments.size());
    for (int s = 1; s <= period; ++s) {
      build_.step = s - 1;
      append(step);
      for (std::size_t f = 0; f < fragments.size(); ++f) {
        const auto part = static_cast<std::int64_t>(f + 1);
        const auto applied = std::max<std::int64_t>(1, part * period / count);
        const auto sent = std::max<std::int64_t>(1, applied - local_.delay);
        if (sent == s) send(f, fragments[f]);
        if (applied == s) apply(f, fragments[f]);
      }
    }
    return std::move(build_.plan);
  }

 private:
  // Adds a step. Its waits for the previous period become waits for the previous step.
  void append(const Plan& step) {
    auto& ops = build_.plan.ops;
    auto& buckets = build_.plan.buckets;
    const auto base = static_cast<OpId>(ops.size());
    const auto bucket = static_cast<int>(buckets.size());
    const auto shift = [](std::vector<OpId>& ids, OpId by) {
      for (OpId& id : ids) id += by;
    };
    const OpId last_base = std::exchange(first_of_step_, base);
    buckets.insert(buckets.end(), step.buckets.begin(), step.buckets.end());
    for (Op op : step.ops) {
      op.step = build_.step;
      shift(op.after, base);
      shift_bucket(op.work, bucket);
      if (build_.step > 0) {
        shift(op.after_previous, last_base);
        op.after.insert(op.after.end(), op.after_previous.begin(), op.after_previous.end());
        op.after_previous.clear();
      } else if (!op.after_previous.empty()) {
        from_before_.push_back(static_cast<OpId>(ops.size()));
      }
      ops.push_back(std::move(op));
    }
    // The first step waits for the period's last one.
    if (build_.step + 1 < build_.plan.steps) return;
    for (const OpId id : from_before_) {
      shift(ops[index(id)].after_previous, base);
    }
  }

  // Sends every bucket of the fragment once the host has waited for the computation.
  void send(std::size_t fragment, const std::vector<BucketExchange>& exchanges) {
    OpId ready = build_.last_computed();
    if (waits()) ready = build_.wait_for_host(host_sync_);
    for (const BucketExchange& exchange : exchanges) {
      const std::size_t bucket = build_.plan.buckets.size();
      build_.plan.buckets.push_back(exchange.bucket);
      const OpId prepared = build_.prepare(bucket, exchange, ready);
      const StreamId stream = own_stream_ > 0 ? own_stream_ : build_.stream_of(bucket);
      const OpId sent = build_.send(bucket, exchange.reduce, stream, {prepared});
      arrived_[fragment].push_back(build_.receive(bucket, exchange, sent));
    }
  }

  // Applies the mean or the outer step after the host has waited again.
  void apply(std::size_t fragment, const std::vector<BucketExchange>& exchanges) {
    std::vector<OpId> done = std::exchange(arrived_[fragment], {});
    if (waits()) done = {build_.wait_for_host(host_sync_, std::move(done))};
    const auto tensors = static_cast<int>(workload_.tensors.size());
    int first = tensors - 1;
    int last = 0;
    Seconds seconds = 0;
    for (const BucketExchange& exchange : exchanges) {
      seconds += exchange.apply;
      for (const int tensor : exchange.bucket.tensors) {
        if (tensor >= tensors) continue;  // a buffer
        first = std::min(first, tensor);
        last = std::max(last, tensor);
      }
    }
    build_.compute(Phase::kAverage, seconds, first, last, std::move(done));
  }

  bool waits() const { return host_sync_ > 0 && local_.delay == 0; }

  const Workload& workload_;
  Seconds host_sync_;
  const LocalSgd& local_;
  Builder build_;
  StreamId own_stream_ = kComputeStream;
  OpId first_of_step_ = 0;
  std::vector<OpId> from_before_;  // operations of the first step that wait for the last one
  std::vector<std::vector<OpId>> arrived_;  // by fragment
};

}  // namespace

Plan local_plan(const Workload& workload, const Cluster& cluster, const Strategy& strategy,
                const TrainingPoint& point, std::int64_t period, bool averaged) {
  const Communication communication = local_communication(workload, cluster, strategy, point);
  const Plan step = local_step(workload, cluster, strategy, communication);
  std::vector<std::vector<BucketExchange>> fragments;
  if (cluster.ranks() > 1 && averaged) fragments = averaged_parameters(workload, cluster, strategy);
  return LocalPlan(workload, cluster, strategy, communication)
      .make(step, static_cast<int>(period), std::move(fragments));
}

Plan local_plan_of_steps(const Workload& workload, const Cluster& cluster, const Strategy& strategy,
                         Seconds step) {
  Communication communication;
  communication.ranks = cluster.ranks();
  communication.streams = 1;
  Builder build(workload, communication);
  build.compute(Phase::kForward, step);
  return LocalPlan(workload, cluster, strategy, communication)
      .make(build.plan, static_cast<int>(strategy.local_sgd.period),
            averaged_parameters(workload, cluster, strategy));
}

}  // namespace syncline::plan
