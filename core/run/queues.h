// The max-plus pass: streams as queues, in one walk through a plan's operations, which are listed
// after what they wait for. Exact where no two collectives share a link; the fluid model
// (model_executor.cc) is for those that do.
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

  // Seconds from which on a stream is free; of an operation's end.
  Seconds free(plan::StreamId stream) const { return free_[index(stream)]; }
  Seconds end(std::size_t op) const { return ends_[op]; }

  // One period: each operation begins when its stream is free and what it waits for has ended, in
  // this period or the one before, and takes duration(its index, its begin).
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

  // The clock starts again at that moment; what was over before it is over at zero.
  void start_at(Seconds moment) {
    for (Seconds& end : ends_) end = std::max(0.0, end - moment);
    for (Seconds& free : free_) free = std::max(0.0, free - moment);
  }

 private:
  std::vector<Seconds> ends_;
  std::vector<Seconds> ends_before_;  // of the period before
  std::vector<Seconds> free_;         // by stream
};

}  // namespace syncline::run
