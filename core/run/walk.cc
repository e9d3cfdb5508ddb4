#include "core/run/walk.h"

#include <algorithm>
#include <cassert>

#include "core/base/index.h"

namespace syncline::run {
namespace {

// Inverts dependencies into successors: `begin` holds each operation's range in `successors`.
void gather_edges(const plan::Plan& plan, std::vector<plan::OpId> plan::Op::*awaited,
                  std::vector<int>& begin, std::vector<plan::OpId>& successors) {
  const auto n = plan.ops.size();
  begin.assign(n + 1, 0);
  for (const auto& op : plan.ops) {
    for (const plan::OpId before : op.*awaited) ++begin[index(before) + 1];
  }
  for (std::size_t i = 0; i < n; ++i) begin[i + 1] += begin[i];
  successors.resize(index(begin[n]));
  std::vector<int> fill(begin.begin(), begin.end() - 1);
  for (std::size_t i = 0; i < n; ++i) {
    for (const plan::OpId before : plan.ops[i].*awaited) {
      successors[index(fill[index(before)]++)] = static_cast<plan::OpId>(i);
    }
  }
}

}  // namespace

Walk::Walk(const plan::Plan& plan, int periods) : operations_(static_cast<int>(plan.ops.size())) {
  const auto n = plan.ops.size();
  next_on_stream_.assign(n, -1);
  wraps_.assign(n, 0);
  waiting_.assign(n * index(periods), 0);

  // Streams are rings: the last operation of a period precedes the first of the next.
  std::vector<plan::OpId> first(index(plan.streams), -1);
  std::vector<plan::OpId> last(index(plan.streams), -1);
  for (std::size_t i = 0; i < n; ++i) {
    const auto stream = index(plan.ops[i].stream);
    const auto id = static_cast<plan::OpId>(i);
    if (first[stream] < 0) {
      first[stream] = id;
    } else {
      next_on_stream_[index(last[stream])] = id;
    }
    last[stream] = id;
    assert(
        std::ranges::all_of(plan.ops[i].after, [id](plan::OpId before) { return before < id; }) &&
        "operations are listed after what they wait for");
  }
  for (std::size_t s = 0; s < first.size(); ++s) {
    if (last[s] < 0) continue;
    next_on_stream_[index(last[s])] = first[s];
    wraps_[index(last[s])] = 1;
  }
  gather_edges(plan, &plan::Op::after, successor_begin_, successors_);
  gather_edges(plan, &plan::Op::after_previous, next_begin_, next_successors_);
  // Each instance waits for its dependencies and its stream, except the first one of a stream.
  for (int p = 0; p < periods; ++p) {
    for (std::size_t i = 0; i < n; ++i) {
      const auto stream = index(plan.ops[i].stream);
      const bool begins_stream = p == 0 && first[stream] == static_cast<plan::OpId>(i);
      waiting_[index(p) * n + i] =
          static_cast<int>(plan.ops[i].after.size()) + (begins_stream ? 0 : 1) +
          (p == 0 ? 0 : static_cast<int>(plan.ops[i].after_previous.size()));
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
