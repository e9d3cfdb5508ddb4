// Walks a plan in time: finds the operations that may begin once another is done. Executors that
// follow events share it; it knows the order of streams and the dependencies, not the clock.
// Dependencies on the previous period are edges that lead one period on.
#pragma once

#include <vector>

#include "core/base/index.h"
#include "core/plan.h"

namespace syncline::run {

// Instances number the operations of repeated periods: instance = period * operations + op.
class Walk {
 public:
  Walk(const plan::Plan& plan, int periods);

  int instances() const { return static_cast<int>(waiting_.size()); }
  plan::OpId op(int instance) const { return static_cast<plan::OpId>(instance % operations_); }
  int period(int instance) const { return instance / operations_; }
  // Returns the operations without dependencies.
  std::vector<int> first() const;

  // Frees the stream for its next operation: appends that one if it waits for no other.
  void pass_stream(int instance, std::vector<int>& ready);
  // Marks the operation done: appends the operations that waited only for it.
  void pass_dependents(int instance, std::vector<int>& ready);

 private:
  void gather_successors(const plan::Plan& plan);
  void release(int instance, std::vector<int>& ready) {
    if (--waiting_[index(instance)] == 0) ready.push_back(instance);
  }

  int operations_;
  std::vector<int> waiting_;                // by instance: number of operations it still waits for
  std::vector<plan::OpId> next_on_stream_;  // by op; wraps to the stream's first operation
  std::vector<char> wraps_;                 // by op: the next one is in the next period
  std::vector<int> successor_begin_;        // by op: range in successors_
  std::vector<plan::OpId> successors_;
  std::vector<int> next_begin_;              // by op: range in next_successors_
  std::vector<plan::OpId> next_successors_;  // operations of the next period that wait for it
};

}  // namespace syncline::run
