// The backward pass of one step with the exchanges that set out during it.
#pragma once

#include <vector>

#include "core/plan/builder.h"

namespace syncline::plan {

// The backward pass, each bucket's exchange (or the first half of a split one) as soon as its last
// gradient is there, or its tick has come, or it is the most urgent; the pass up to a bucket stands
// ahead of its exchange.
class Backward {
 public:
  Backward(Builder& build, const Workload& workload, const Communication& communication)
      : build_(build), workload_(workload), communication_(communication) {}

  // Its gradients' buckets are those of the plan from `begin` on. Returns the last operation of
  // each.
  std::vector<OpId> run(std::size_t begin);

  // The first wait for a tick, or -1: it begins with the step.
  OpId first_tick() const { return first_tick_; }

 private:
  // Parameters that the backward pass gathers again: a bucket of the plan, and the first tensor
  // that needs them.
  struct Again {
    std::size_t bucket = 0;
    const Exchange* exchange = nullptr;
    int needed = 0;
  };
  // In the order in which they are needed.
  std::vector<Again> parameters_again(std::size_t begin) const;

  // By tensor: elements of parameters from that one on which are not gathered again.
  std::vector<std::int64_t> kept_elements() const;

  // Whether parameters may be gathered beside those that the pass holds from tensor `next` on, the
  // first `needed` of again_ among them.
  bool room_ahead(int next, std::size_t needed) const;

  const Bucket& bucket(std::size_t index) const { return build_.plan.buckets[index]; }

  // Exchanges that must not be under way any more when the backward pass goes on towards a bucket.
  std::vector<OpId> awaited(std::size_t exchange, const std::vector<OpId>& done);

  // Asks, behind the pass so far, for the first `needed` of again_ and for the next one behind
  // them, if there is room. Adds what brings in the former to `after`.
  void fetch(std::size_t needed, std::vector<OpId>& after);

  OpId compute(int first, int last, std::vector<OpId> after);

  // The pass up to a tensor, in pieces where parameters come in on the way; the first waits for
  // `after` too.
  void pass_to(int ready, std::vector<OpId> after);

  OpId reduce(std::size_t index, const Exchange& exchange, std::size_t place,
              std::vector<OpId> after, bool prepare);

  // The tick at `time` from the step's begin, on a stream of the framework's own.
  OpId tick(Seconds time);

  Builder& build_;
  const Workload& workload_;
  const Communication& communication_;
  OpId segment_ = 0;                  // the pass, or what stands ahead of it, as far as it got
  int next_ = 0;                      // the first tensor behind that
  std::size_t awaited_ = 0;           // exchanges, from the first on
  std::vector<std::size_t> counted_;  // by exchange: those ahead of it, a gradient's parts as one
  std::vector<Again> again_;
  std::vector<std::int64_t> kept_;
  std::vector<OpId> gathers_;  // of again_, those that were asked for
  std::size_t gathers_awaited_ = 0;
  StreamId tick_stream_ = 0;
  OpId first_tick_ = -1;
  OpId tick_ = -1;
  Seconds tick_time_ = 0;
};

}  // namespace syncline::plan
