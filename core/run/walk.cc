#include "core/run/walk.h"

#include <algorithm>
#include <cassert>

#include "core/base/index.h"

namespace syncline::run {
namespace {

// Turns counts of successors, each one place behind its operation's, into the begin of each range.
void add_up(std::vector<int>& begin) {
  for (std::size_t i = 0; i + 1 < begin.size(); ++i) begin[i + 1] += begin[i];
}

}  // namespace

Walk::Walk(const plan::Plan& plan, int periods) : operations_(static_cast<int>(plan.ops.size())) {
  const auto n = plan.ops.size();
  next_on_stream_.assign(n, -1);
  wraps_.assign(n, 0);
  waiting_.assign(n * index(periods), 0);
  successor_begin_.assign(n + 1, 0);
  next_begin_.assign(n + 1, 0);

  // Streams are rings: the last operation of a period precedes the first of the next. Each instance
  // waits for its dependencies and its stream, except the first one of a stream.
  std::vector<plan::OpId> first(index(plan.streams), -1);
  std::vector<plan::OpId> last(index(plan.streams), -1);
  std::vector<int> later(n);  // as waiting_, of each period but the first
  for (std::size_t i = 0; i < n; ++i) {
    const plan::Op& op = plan.ops[i];
    const auto stream = index(op.stream);
    const auto id = static_cast<plan::OpId>(i);
    const bool begins_stream = first[stream] < 0;
    if (begins_stream) {
      first[stream] = id;
    } else {
      next_on_stream_[index(last[stream])] = id;
    }
    last[stream] = id;
    for (const plan::OpId before : op.after) {
      assert(before < id && "operations are listed after what they wait for");
      ++successor_begin_[index(before) + 1];
    }
    for (const plan::OpId before : op.after_previous) ++next_begin_[index(before) + 1];
    const auto awaited = static_cast<int>(op.after.size());
    if (periods > 0) waiting_[i] = awaited + (begins_stream ? 0 : 1);
    later[i] = awaited + 1 + static_cast<int>(op.after_previous.size());
  }
  for (int p = 1; p < periods; ++p) {
    std::ranges::copy(later, waiting_.begin() + static_cast<std::ptrdiff_t>(index(p) * n));
  }
  for (std::size_t s = 0; s < first.size(); ++s) {
    if (last[s] < 0) continue;
    next_on_stream_[index(last[s])] = first[s];
    wraps_[index(last[s])] = 1;
  }
  gather_successors(plan);
}

// Inverts the dependencies. The begins of ranges hold their numbers.
void Walk::gather_successors(const plan::Plan& plan) {
  add_up(successor_begin_);
  add_up(next_begin_);
  successors_.resize(index(successor_begin_.back()));
  next_successors_.resize(index(next_begin_.back()));
  std::vector<int> place(successor_begin_.begin(), successor_begin_.end() - 1);
  std::vector<int> next_place(next_begin_.begin(), next_begin_.end() - 1);
  for (plan::OpId id = 0; id < operations_; ++id) {
    const plan::Op& op = plan.ops[index(id)];
    for (const plan::OpId before : op.after) {
      successors_[index(place[index(before)]++)] = id;
    }
    for (const plan::OpId before : op.after_previous) {
      next_successors_[index(next_place[index(before)]++)] = id;
    }
  }
}

std::vector<int> Walk::first() const {
  std::vector<int> ready;
  for (int i = 0; i < operations_; ++i) {
    if (waiting_[index(i)] == 0) ready.push_back(i);
  }
  return ready;
}

void Walk::pass_stream(int instance, std::vector<int>& ready) {
  const auto id = index(op(instance));
  const int next =
      (period(instance) + (wraps_[id] != 0 ? 1 : 0)) * operations_ + next_on_stream_[id];
  if (next < instances()) release(next, ready);
}

void Walk::pass_dependents(int instance, std::vector<int>& ready) {
  const auto id = index(op(instance));
  const int base = instance - op(instance);
  for (int s = successor_begin_[id]; s < successor_begin_[id + 1]; ++s) {
    release(base + successors_[index(s)], ready);
  }
  if (base + operations_ >= instances()) return;
  for (int s = next_begin_[id]; s < next_begin_[id + 1]; ++s) {
    release(base + operations_ + next_successors_[index(s)], ready);
  }
}

}  // namespace syncline::run
