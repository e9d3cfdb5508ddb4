// The backward pass of a step with the exchanges of its gradients.
#pragma once

#include <cstddef>
#include <vector>

#include "core/communication.h"
#include "core/plan/builder.h"

namespace syncline::plan {

// Owns one backward pass: its progress, the exchanges under way, the parameters that are gathered
// again for it, and the ticks that release exchanges.
class BackwardPass {
 public:
  // Begins after the plan's last operation, which is the forward pass. The gradients' buckets are
  // those of the plan from `begin` on; `fetched`: the gathers of the forward pass, by fetch.
  BackwardPass(Builder& build, const Workload& workload, const Communication& communication,
               std::size_t begin, const std::vector<OpId>& fetched = {});

  // Adds the pass and each bucket's exchange (or the first half of a split one): once its last
  // gradient is ready, its tick has come, or it is the most urgent. The pass up to a bucket
  // precedes its exchange. Returns the last operation of each exchange.
  std::vector<OpId> run();

  // Adds the pass without exchanges: gradients add up. Returns its last operation.
  OpId accumulate();

  // Returns the first wait for a tick, which begins with the step, or -1.
  OpId first_tick() const { return first_tick_; }

 private:
  // A bucket of the plan with parameters that the pass gathers, and the tensors that begin and
  // await the gather.
  struct Gather {
    std::size_t bucket = 0;
    const Route* route = nullptr;
    int asked = 0;
    int needed = 0;
    OpId op = -1;  // -1: not begun yet
  };

  const Bucket& bucket(std::size_t number) const { return build_.plan.buckets[number]; }
  std::size_t in_turn(std::size_t turn) const;

  void find_parameters_again();
  void find_fetches(const std::vector<OpId>& fetched);
  bool cuts(int tensor) const;
  std::vector<OpId> awaited_operations(std::size_t turn, const std::vector<OpId>& done);
  void pass_to(int ready, std::vector<OpId> after);
  void gather(std::vector<OpId>& after);
  OpId reduce(std::size_t number, const BucketExchange& exchange, std::size_t place,
              std::vector<OpId> after, bool prepare);
  OpId tick(const BucketExchange& exchange, OpId ready);

  Builder& build_;
  const Workload& workload_;
  const Communication& communication_;
  std::size_t begin_;
  OpId segment_ = 0;  // last operation of the pass, or the operation before the pass
  int next_ = 0;      // first tensor after that

  // Exchanges under way.
  std::size_t awaited_ = 0;           // awaited exchanges, from the first on
  std::vector<std::size_t> counted_;  // by turn: exchanges before it, a gradient's parts as one

  // Parameters that the pass gathers.
  std::vector<Gather> gathers_;
  std::vector<std::vector<std::size_t>> asked_, needed_;  // gathers, by tensor

  // Ticks.
  OpId first_tick_ = -1;
  OpId tick_ = -1;  // the last one
  Seconds tick_time_ = 0;
};

}  // namespace syncline::plan
