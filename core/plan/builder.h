// Putting a plan together, operation by operation: what a bucket needs on its way, and what each
// part of it costs. The plans of a step (step_plan) and of a LocalSGD period (planner) are built
// with it.
#pragma once

#include <utility>
#include <vector>

#include "core/compress/power_sgd.h"
#include "core/plan/plan.h"
#include "core/scenario/cluster.h"
#include "core/scenario/strategy.h"

namespace syncline::plan {

// Puts a plan together: an operation goes behind its stream's last one.
class Builder {
 public:
  Builder(const Workload& workload, const Cluster& cluster, const Strategy& strategy)
      : workload_(workload), cluster_(cluster), strategy_(strategy) {
    plan.ranks = cluster.ranks();
    plan.streams = strategy.overlap ? 1 + strategy.streams : 1;
    if (strategy.overlap && strategy.hierarchy.across_stream) across_stream_ = plan.streams++;
    plan.updates_by_bucket = strategy.update == Strategy::Update::kPerBucket;
  }

  OpId add(StreamId stream, const Work& work, std::vector<OpId> after = {}) {
    plan.ops.push_back({stream, std::move(after), work, step});
    return static_cast<OpId>(plan.ops.size() - 1);
  }

  // What data-parallel running costs the host ahead of each step.
  void begin_step() {
    if (cluster_.step_overhead() > 0) wait_for_host(cluster_.step_overhead());
  }

  // What DDP does to buffers ahead of a step's first forward pass; LocalSGD's steps do not.
  void broadcast_buffers() {
    if (cluster_.ranks() == 1 || !strategy_.broadcast_buffers) return;
    const Seconds taken = workload_.buffer_broadcast;
    if (taken > 0) wait_for_host(taken);
  }

  OpId wait_for_host(Seconds seconds, std::vector<OpId> after = {},
                     StreamId stream = kComputeStream) {
    return add(stream, Busy{Busy::Reason::kHost, seconds}, std::move(after));
  }

  OpId compute(Phase phase, Seconds seconds, int first = 0, int last = -1,
               std::vector<OpId> after = {}) {
    return add(kComputeStream, Compute{phase, seconds, first, last}, std::move(after));
  }

  // The micro-batches of a step ahead of its last one, begun by their first forward pass, which
  // stands in the plan already: their gradients stay with the rank.
  void earlier_micro_batches();

  // Buckets go round the communication streams, the order in which frameworks use their
  // communicators.
  StreamId stream_of(std::size_t bucket) const {
    if (!strategy_.overlap) return kComputeStream;
    return 1 + static_cast<StreamId>(bucket % static_cast<std::size_t>(strategy_.streams));
  }

  // What a bucket needs before it is sent, on the compute stream. Returns its last operation, or
  // `ready` where there is nothing to do.
  OpId prepare(std::size_t index, OpId ready);

  // The collectives one after the other on a stream, beginning once all of `after` is done. Returns
  // the last one, or the last of `after` where there are none.
  OpId send(const std::vector<collective::Collective>& collectives, StreamId stream,
            std::vector<OpId> after);

  // Likewise an all-gather of what the ranks hold their parts of; `again`: of the second copy.
  OpId gather(std::size_t index, StreamId stream, std::vector<OpId> after, bool again = false);

  // What follows a bucket's last collective on its stream. Returns the operation after which the
  // bucket is complete.
  OpId receive(std::size_t index, OpId last);

  // Back out of the bucket, on the compute stream. Returns its operation, or `arrived` where
  // nothing is copied.
  OpId copy_out(std::size_t index, OpId arrived);

  // The host's own delay ahead of the update, where one was measured, once all of `after` is done.
  void host_gap(std::vector<OpId> after);

  // A bucket's whole exchange, from preparing to receiving, beginning once `ready` is done. Returns
  // its last operation.
  OpId exchange(std::size_t index, OpId ready);

  // The first half of a split exchange, after which each rank of a group holds its part of the sum
  // of all: a reduce-scatter inside, and the all-reduce across groups.
  std::vector<collective::Collective> scattered(std::size_t index) const;

  std::vector<collective::Collective> collectives_of(const Bucket& bucket, int id) const;

  // Without what waits for the last micro-batch.
  std::vector<collective::Collective> in_micro_batch(
      std::vector<collective::Collective> collectives) const;

  Seconds memory_time(double bytes) const {
    return cluster_.device.memory > 0 ? bytes / cluster_.device.memory : 0;
  }

  // One way between the gradients' own memory and the bucket's: as measured, else what is read and
  // what is written.
  Seconds copy_time(const Bucket& bucket, bool into) const;

  // Of a low-rank codec: matrix products at the device's rate or its memory's, whichever takes
  // longer. What lies between the sums of the two factors is in the decoding.
  Seconds encode_time(const Bucket& bucket) const;

  Seconds decode_time(const Bucket& bucket) const;
  Seconds codec_time(const Bucket& bucket, double traffic) const;

  // A roofline: what a device computes and moves at the same time.
  Seconds work_time(const compress::LowRankWork& work) const;

  Plan plan;
  int step = 0;      // of the period, for the operations that follow
  int subgroup = 1;  // above 1: gradients are all-reduced in groups of this many ranks
  bool last_micro_batch = true;

 private:
  std::vector<collective::Collective> factors_of(const Bucket& bucket, int id) const;

  // A bucket's payload in one of the two halves of its exchange.
  collective::Collective half_of(collective::CollectiveKind kind, std::size_t index,
                                 collective::Groups groups) const;

  const Workload& workload_;
  const Cluster& cluster_;
  const Strategy& strategy_;
  StreamId across_stream_ = kComputeStream;  // of its own, for what follows a reduce-scatter
};

}  // namespace syncline::plan
