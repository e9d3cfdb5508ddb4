// Putting a plan together, operation by operation: what a bucket needs on its way. The plans of a
// step (step_plan) and of a LocalSGD period (planner) are built with it.
#pragma once

#include <utility>
#include <vector>

#include "core/communication.h"

namespace syncline::plan {

// An operation goes behind its stream's last one.
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

  // What data-parallel running costs the host ahead of each step, and of its forward pass.
  void begin_step();

  // The micro-batches of a step ahead of its last one, begun by their first forward pass, which
  // stands in the plan already: their gradients stay with the rank.
  void earlier_micro_batches();

  // Buckets go round the communication streams, the order in which frameworks use their
  // communicators.
  StreamId stream_of(std::size_t bucket) const;

  // What a bucket of the plan needs before it is sent, on the compute stream. Returns its last
  // operation, or `ready` where there is nothing to do.
  OpId prepare(std::size_t bucket, const Exchange& exchange, OpId ready);

  // Returns the collectives one after the other, from that stream on, beginning once all of `after`
  // is done. Returns the last one, or the last of `after` where there are none.
  OpId send(std::size_t bucket, const Route& route, StreamId stream, std::vector<OpId> after);

  // Likewise a route that gathers what ranks hold their parts of.
  OpId gather(std::size_t bucket, const Route& route, StreamId stream, std::vector<OpId> after);

  // What follows a bucket's last collective on its stream. Returns the operation after which the
  // bucket is complete.
  OpId receive(std::size_t bucket, const Exchange& exchange, OpId last);

  // Back out of the bucket, on the compute stream. Returns its operation, or `arrived` where
  // nothing is copied.
  OpId copy_out(std::size_t bucket, const Exchange& exchange, OpId arrived);

  // The host's own delay ahead of the update, where one was measured, once all of `after` is done.
  void host_gap(std::vector<OpId> after);

  // Returns the last operation of the compute stream, which has one.
  OpId last_computed() const;

  Plan plan;
  int step = 0;  // of the period, for the operations that follow
  bool last_micro_batch = true;
  StreamId tick_stream = 0;  // of the framework's own, once it waits for a tick

 private:
  const Workload& workload_;
  const Communication& communication_;
  StreamId across_stream_ = kComputeStream;
};

// Numbers the bucket of a part of one plan as in another, where the part's first stands at `first`.
void shift_bucket(Work& work, int first);

}  // namespace syncline::plan
