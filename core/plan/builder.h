// Builds a plan operation by operation: the steps of a bucket on its route. The plans of a step
// (step_plan) and of a LocalSGD period (planner) are built with it.
#pragma once

#include <utility>
#include <vector>

#include "core/communication.h"

namespace syncline::plan {

// Appends operations; each follows its stream's last one.
class Builder {
 public:
  Builder(const Workload& workload, const Communication& communication);

  OpId add(StreamId stream, const Work& work, std::vector<OpId> after = {}) {
    plan.ops.push_back({stream, std::move(after), work, step});
    return static_cast<OpId>(plan.ops.size() - 1);
  }

  OpId compute(Phase phase, Seconds seconds, int first = 0, int last = -1,
               std::vector<OpId> after = {}) {
    return add(kComputeStream, Compute{phase, seconds, first, last}, std::move(after));
  }

  OpId wait_for_host(Seconds seconds, std::vector<OpId> after = {},
                     StreamId stream = kComputeStream) {
    return add(stream, Busy{Busy::Reason::kHost, seconds}, std::move(after));
  }

  // Adds the host's data-parallel overhead before each step and before its forward pass.
  void begin_step();

  // Adds the micro-batches of a step before its last one; their gradients stay with the rank.
  // Requires their first forward pass in the plan already.
  void earlier_micro_batches();

  // Returns a bucket's communication stream. Buckets take the streams in turn, as frameworks use
  // their communicators.
  StreamId stream_of(std::size_t bucket) const;

  // Adds a bucket's work on the compute stream before it is sent. Returns its last operation, or
  // `ready` without any.
  OpId prepare(std::size_t bucket, const BucketExchange& exchange, OpId ready);

  // Adds the collectives one after the other, from that stream on, once all of `after` is done.
  // Returns the last one, or the last of `after` without any.
  OpId send(std::size_t bucket, const Route& route, StreamId stream, std::vector<OpId> after);

  // Adds the same for a route that gathers the ranks' parts.
  OpId gather(std::size_t bucket, const Route& route, StreamId stream, std::vector<OpId> after);

  // Adds the work after a bucket's last collective on its stream. Returns the operation that
  // completes the bucket.
  OpId receive(std::size_t bucket, const BucketExchange& exchange, OpId last);

  // Adds the copy out of the bucket on the compute stream. Returns it, or `arrived` without a copy.
  OpId copy_out(std::size_t bucket, const BucketExchange& exchange, OpId arrived);

  // Adds the host's own delay before the update, if one was measured, once all of `after` is done.
  void host_gap(std::vector<OpId> after);

  // Returns the last operation of the compute stream. Requires one.
  OpId last_computed() const;

  Plan plan;
  int step = 0;  // index in the period, for the next operations
  bool last_micro_batch = true;
  StreamId tick_stream = 0;  // of the framework's own, once it waits for a tick

 private:
  const Workload& workload_;
  const Communication& communication_;
  StreamId across_stream_ = kComputeStream;
};

// Shifts the bucket index of a part's work by `first`, its first bucket's index in a plan.
void shift_bucket(Work& work, int first);

}  // namespace syncline::plan
