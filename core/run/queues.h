// The max-plus pass: streams as queues, in one walk through a plan's operations, which are listed
// after their dependencies. Exact if no two collectives share a link; otherwise the fluid model
// (model_executor.cc) applies.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/index.h"
#include "core/plan.h"

namespace syncline::run {

class Queues {
 public:
  explicit Queues(const plan::Plan& plan)
      : ends_(plan.ops.size(), 0),
        ends_before_(plan.ops.size(), 0),
        free_(index(plan.streams), 0) {}

  // Returns the time from which a stream is free, and an operation's end, in seconds.
  Seconds free(plan::StreamId stream) const { return free_[index(stream)]; }
  Seconds end(std::size_t op) const { return ends_[op]; }

  // Runs one period. Each operation begins when its stream is free and its dependencies have ended,
  // in this period or the previous one. It takes duration(its index, its begin).
  template <typename Duration>
  void pass(const plan::Plan& plan, const Duration& duration) {
    std::swap(ends_, ends_before_);
    for (std::size_t i = 0; i < plan.ops.size(); ++i) {
      const plan::Op& op = plan.ops[i];
      Seconds& stream = free_[index(op.stream)];
      Seconds begin = stream;
      for (const plan::OpId id : op.after) {
        begin = std::max(begin, ends_[index(id)]);
      }
      for (const plan::OpId id : op.after_previous) {
        begin = std::max(begin, ends_before_[index(id)]);
      }
      ends_[i] = stream = begin + duration(i, begin);
    }
  }

  // Starts the clock again at `moment`; earlier ends become zero.
  void start_at(Seconds moment) {
    for (Seconds& end : ends_) end = std::max(0.0, end - moment);
    for (Seconds& free : free_) free = std::max(0.0, free - moment);
  }

 private:
  std::vector<Seconds> ends_;
  std::vector<Seconds> ends_before_;  // of the previous period
  std::vector<Seconds> free_;         // by stream
};

}  // namespace syncline::run
