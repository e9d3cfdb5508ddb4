// The buckets of a step, and the ones that bring each tensor.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/communication.h"

namespace syncline::plan {

// Sorts a list and removes duplicates.
template <typename Item>
void keep_each_once(std::vector<Item>& items) {
  std::sort(items.begin(), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
}

// Owns the numbers of a step's buckets: those of the last micro-batch and of separate parameters,
// counted from 0, and the ones that bring or update a tensor's parameters.
class StepBuckets {
 public:
  // Moves the exchanges' buckets into the plan. Each micro-batch that exchanges has its own
  // buckets; the last one's come last.
  StepBuckets(const Workload& workload, Communication& communication, Plan& plan);

  std::size_t gradients() const { return communication_.gradients.size(); }
  std::size_t count() const { return gradients() + communication_.parameters.size(); }
  const BucketExchange& exchange(std::size_t b) const {
    const std::size_t first = gradients();
    return b < first ? communication_.gradients[b] : communication_.parameters[b - first];
  }
  const Bucket& bucket(std::size_t b) const { return plan_.buckets[base_ + b]; }

  // Returns bucket b's index in the plan; base() is the first one's.
  std::size_t in_plan(std::size_t b) const { return base_ + b; }
  std::size_t base() const { return base_; }

  // Returns the buckets that bring in a tensor's parameters. Requires a sharded update, or a step
  // that the next one does not await as a whole.
  const std::vector<std::size_t>& bringing(std::size_t tensor) const { return bringing_[tensor]; }

  // Returns the buckets of parameters of modules that begin with the forward pass of a module
  // inside them, outer modules first. Requires the same.
  const std::vector<std::size_t>& ahead() const { return ahead_; }

  // Returns the gradients' buckets that hold a tensor of bucket b.
  std::vector<std::size_t> updating(std::size_t b) const;

  // Returns the share of the update for a bucket's parameters on one rank.
  double share_of_update(std::size_t b) const;

 private:
  void find_bringing();
  void find_updating();

  const Workload& workload_;
  const Communication& communication_;  // its buckets moved into the plan
  const Plan& plan_;
  double all_bytes_;  // of gradients
  std::size_t base_ = 0;
  std::vector<std::vector<std::size_t>> bringing_;  // buckets, by tensor
  std::vector<std::vector<std::size_t>> updating_;  // the gradients' buckets, by tensor
  std::vector<std::size_t> ahead_;
};

}  // namespace syncline::plan
