#include "live/live_executor.h"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>

#include "live/control_channel.h"
#include "live/figures.h"

namespace syncline::live {
namespace {

class Streams {
 public:
  Streams(const plan::Plan& plan, int periods, int rank, const OpWork& work)
      : plan_(plan), periods_(periods), rank_(rank), work_(work) {
    by_stream_.resize(static_cast<std::size_t>(plan.streams));
    concerns_.assign(plan.ops.size(), 0);
    for (std::size_t i = 0; i < plan.ops.size(); ++i) {
      concerns_[i] = plan::concerns(plan, plan.ops[i], rank) ? 1 : 0;
      if (concerns_[i] == 0) continue;
      by_stream_[static_cast<std::size_t>(plan.ops[i].stream)].push_back(
          static_cast<plan::OpId>(i));
    }
    done_.assign(plan.ops.size(), 0);
    ended_.assign(plan.ops.size(), 0);
    spans_.resize(by_stream_.size());
    begun_ = ControlChannel::now();
  }

  std::vector<run::Span> run() {
    std::vector<std::thread> threads;
    threads.reserve(by_stream_.size());
    try {
      for (std::size_t s = 1; s < by_stream_.size(); ++s) {
        threads.emplace_back([this, s] { walk(s); });
      }
      walk(0);
    } catch (...) {  // no further thread can begin
      fail();
    }
    for (auto& thread : threads) thread.join();
    if (failure_) std::rethrow_exception(failure_);
    std::vector<run::Span> all;
    for (auto& spans : spans_) all.insert(all.end(), spans.begin(), spans.end());
    return all;
  }

 private:
  // Ends the streams with the exception that is being handled.
  void fail() {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
    changed_.notify_all();
  }

  void walk(std::size_t stream) {
    Seconds free = begun_;
    for (int period = 0; period < periods_; ++period) {
      for (const plan::OpId op : by_stream_[stream]) {
        Seconds ready = free;
        if (!await(op, period, ready)) return;
        const Seconds begin = std::max(ready, begun_);
        try {
          free = work_(op, period, ready);
          spans_[stream].push_back({period, op, rank_, begin, free});
        } catch (...) {
          return fail();
        }
        const std::lock_guard lock(mutex_);
        done_[static_cast<std::size_t>(op)] = period + 1;
        ended_[static_cast<std::size_t>(op)] = free;
        changed_.notify_all();
      }
    }
  }

  // Waits for the operation's dependencies, and raises `ready` to the end of the last one. Returns
  // false if another stream has failed.
  bool await(plan::OpId op, int period, Seconds& ready) {
    const plan::Op& what = plan_.ops[static_cast<std::size_t>(op)];
    std::unique_lock lock(mutex_);
    const auto wait = [&](plan::OpId before, int periods) {
      const auto b = static_cast<std::size_t>(before);
      if (concerns_[b] == 0) return;  // of another stage: its message says when
      changed_.wait(lock, [&] { return failure_ || done_[b] >= periods; });
      // An end one period later does not bound this period.
      if (done_[b] == periods) ready = std::max(ready, ended_[b]);
    };
    for (const plan::OpId before : what.after) wait(before, period + 1);
    if (period > 0) {
      for (const plan::OpId before : what.after_previous) wait(before, period);
    }
    return !failure_;
  }

  const plan::Plan& plan_;
  const int periods_;
  const int rank_;
  const OpWork& work_;
  std::vector<char> concerns_;  // by op: this rank takes part
  std::vector<std::vector<plan::OpId>> by_stream_;
  Seconds begun_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> done_;       // by op: number of periods
  std::vector<Seconds> ended_;  // by op: end of the last period
  std::vector<std::vector<run::Span>> spans_;
  std::exception_ptr failure_;
};

}  // namespace

std::vector<run::Span> run_stream_threads(const plan::Plan& plan, int periods, int rank,
                                          const OpWork& work) {
  return Streams(plan, periods, rank, work).run();
}

run::Timeline exchange_timelines(ControlChannel& channel, std::vector<run::Span> own,
                                 const plan::Plan& plan, int periods, const ClockOffset& before,
                                 const ClockOffset& after) {
  Seconds first = std::numeric_limits<double>::infinity();
  Seconds last = -first;
  for (const auto& span : own) {
    first = std::min(first, span.begin);
    last = std::max(last, span.end);
  }
  // A drift within the errors of the two measurements counts as none.
  const Seconds drift = after.add - before.add;
  const bool drifts = std::abs(drift) > before.error + after.error;
  const Seconds still = before.error <= after.error ? before.add : after.add;
  const auto on_first_clock = [&](Seconds time) {
    if (!drifts) return time + still;
    const double share = last > first ? (time - first) / (last - first) : 0;
    return time + before.add + share * drift;
  };
  for (auto& span : own) {
    span.begin = on_first_clock(span.begin);
    span.end = on_first_clock(span.end);
  }

  run::Timeline timeline;
  const auto all = channel.gather(bytes_of(own));
  for (std::size_t r = 0; r < all.size(); ++r) {
    const int rank = static_cast<int>(r);
    const auto spans = read_figures<run::Span>(all[r], channel, rank);
    const auto sound = [&](const run::Span& span) {
      return span.rank == rank && span.period >= 0 && span.period < periods && span.op >= 0 &&
             span.op < static_cast<plan::OpId>(plan.ops.size()) && std::isfinite(span.begin) &&
             std::isfinite(span.end);
    };
    if (!std::all_of(spans.begin(), spans.end(), sound)) {
      channel.broken_by(rank, "it gave an operation that is none of the plan's");
    }
    timeline.spans.insert(timeline.spans.end(), spans.begin(), spans.end());
  }
  Seconds begun = std::numeric_limits<double>::infinity();
  for (const auto& span : timeline.spans) begun = std::min(begun, span.begin);
  timeline.period_ends.assign(static_cast<std::size_t>(periods), 0);
  for (auto& span : timeline.spans) {
    span.begin -= begun;
    span.end -= begun;
    auto& end = timeline.period_ends[static_cast<std::size_t>(span.period)];
    end = std::max(end, span.end);
  }
  return timeline;
}

Seconds worst_clock_error(ControlChannel& channel, const ClockOffset& before,
                          const ClockOffset& after) {
  const Seconds own = std::max(before.error, after.error) + std::abs(after.add - before.add);
  const auto all = channel.gather(bytes_of(std::vector{own}));
  Seconds worst = 0;
  for (std::size_t r = 0; r < all.size(); ++r) {
    const int rank = static_cast<int>(r);
    worst = std::max(worst, read_figures<Seconds>(all[r], channel, rank, 1).front());
  }
  return worst;
}

}  // namespace syncline::live
