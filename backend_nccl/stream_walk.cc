#include "backend_nccl/stream_walk.h"

#include <algorithm>
#include <cassert>
#include <thread>
#include <utility>

#include "core/base/index.h"
#include "live/control_channel.h"

namespace syncline::nccl_backend {
namespace {

using namespace std::chrono_literals;

// Commands under way at most. CUDA's queues hold about a thousand; a launch into a full queue never
// returns if the GPU waits for a rank that hangs.
constexpr int kMaxCommands = 512;

}  // namespace

StreamWalk::StreamWalk(const plan::Plan& plan, const LaunchOrder& order,
                       const live::ControlChannel& channel, const Communicators& communicators,
                       LaunchWork work, LaunchCost cost, LaunchName name, int periods)
    : plan_(plan),
      order_(order),
      channel_(channel),
      communicators_(communicators),
      work_(std::move(work)),
      cost_(std::move(cost)),
      name_(std::move(name)) {
  for (int s = 0; s < plan.streams; ++s) {
    streams_.emplace_back(s != plan::kComputeStream);
    crossings_.emplace_back(false);
  }
  times_ = std::vector<Times>(index(periods) * order.launches.size());
  for (std::size_t i = 0; i < 2 * order.launches.size(); ++i) signals_.emplace_back(false);
  Seconds longest = 0;
  for (const auto& op : plan.ops) longest = std::max(longest, plan::seconds_of(op.work));
  constexpr double kMilli = 1e3;
  longest_ = std::chrono::milliseconds(static_cast<std::int64_t>(longest * kMilli) + 1);
}

StreamWalk::~StreamWalk() {
  if (graph_ != nullptr) cudaGraphExecDestroy(graph_);
}

std::string StreamWalk::describe(std::size_t launch) const {
  const std::size_t count = order_.launches.size();
  const OrderedLaunch& what = order_.launches[launch % count];
  return name_(what.op) + " (stream " + std::to_string(what.stream) + ", period " +
         std::to_string(launch / count) + ")";
}

void StreamWalk::record(const CudaEvent& event, cudaStream_t stream, bool captured) const {
  captured ? event.record_outside(stream) : event.record(stream);
}

// Makes all streams begin after stream 0. join() makes it end after all of them.
void StreamWalk::fork() {
  crossings_.front().record(streams_.front().get());
  for (std::size_t s = 1; s < streams_.size(); ++s) {
    check_cuda(cudaStreamWaitEvent(streams_[s].get(), crossings_.front().get(), 0),
               "cudaStreamWaitEvent");
  }
}

void StreamWalk::join() {
  for (std::size_t s = 1; s < streams_.size(); ++s) {
    crossings_[s].record(streams_[s].get());
    check_cuda(cudaStreamWaitEvent(streams_.front().get(), crossings_[s].get(), 0),
               "cudaStreamWaitEvent");
  }
}

void StreamWalk::launch(int period, std::size_t place, bool captured) {
  const OrderedLaunch& launch = order_.launches[place];
  const std::size_t count = order_.launches.size();
  const std::size_t number = index(period) * count + place;
  const cudaStream_t stream = streams_[index(launch.stream)].get();
  for (const EventWait& wait : launch.waits) {
    if (wait.previous && period == 0) continue;
    const auto parity = index((wait.previous ? period - 1 : period) % 2);
    check_cuda(cudaStreamWaitEvent(stream, signals_[parity * count + index(wait.op)].get(), 0),
               "cudaStreamWaitEvent");
  }
  record(times_[number].begin, stream, captured);
  work_(launch, stream);
  record(times_[number].end, stream, captured);
  if (launch.awaited) signals_[index(period % 2) * count + place].record(stream);
}

void StreamWalk::walk(int periods, bool captured) {
  assert(index(periods) * order_.launches.size() <= times_.size() && "as many as there are events");
  periods_ = periods;
  outstanding_.clear();
  commands_ = 0;
  fork();
  for (int period = 0; period < periods; ++period) {
    for (std::size_t i = 0; i < order_.launches.size(); ++i) {
      const std::size_t number = index(period) * order_.launches.size() + i;
      const int commands = cost_(order_.launches[i]) + 4;
      try {
        if (!captured) hold(std::max(0, kMaxCommands - commands));
        launch(period, i, captured);
      } catch (const DeviceError& error) {
        throw DeviceError(std::string(error.what()) + ", at " + describe(number));
      }
      outstanding_.push_back({number, commands});
      commands_ += commands;
    }
  }
  join();
}

// Waits until at most `commands` are under way. The oldest depends on no later launch, so the wait
// ends.
void StreamWalk::hold(int commands) {
  WaitLimit wait_limit(channel_, longest_);
  while (commands_ > commands && !outstanding_.empty()) {
    const Outstanding& first = outstanding_.front();
    if (times_[first.launch].end.is_done()) {
      commands_ -= first.commands;
      outstanding_.pop_front();
      wait_limit.note_progress();
      continue;
    }
    communicators_.check();
    wait_limit.look("waiting for " + describe(first.launch));
    std::this_thread::sleep_for(50us);
  }
}

// Waits for the end of the run. Outstanding launches show the device's progress. A graph's events
// show none until its end, so its limit is the sum over all its periods.
void StreamWalk::await() {
  done_.record(streams_.front().get());
  hold(0);
  WaitLimit wait_limit(channel_, longest_ * static_cast<std::int64_t>(order_.launches.size()) *
                                     std::max(1, periods_));
  while (!done_.is_done()) {
    communicators_.check();
    wait_limit.look("waiting for the end of the run");
    std::this_thread::sleep_for(200us);
  }
}

void StreamWalk::run(int periods) {
  walk(periods, false);
  await();
}

void StreamWalk::capture(int periods) {
  check_cuda(cudaStreamBeginCapture(streams_.front().get(), cudaStreamCaptureModeRelaxed),
             "cudaStreamBeginCapture");
  cudaGraph_t graph = nullptr;
  try {
    walk(periods, true);
  } catch (...) {
    cudaStreamEndCapture(streams_.front().get(), &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
    throw;
  }
  outstanding_.clear();
  commands_ = 0;
  check_cuda(cudaStreamEndCapture(streams_.front().get(), &graph), "cudaStreamEndCapture");
  const cudaError_t made = cudaGraphInstantiate(&graph_, graph, 0);
  cudaGraphDestroy(graph);
  check_cuda(made, "cudaGraphInstantiate");
  check_cuda(cudaGraphUpload(graph_, streams_.front().get()), "cudaGraphUpload");
  check_cuda(cudaStreamSynchronize(streams_.front().get()), "cudaStreamSynchronize");
}

void StreamWalk::run_captured() {
  assert(graph_ != nullptr && "captured before");
  check_cuda(cudaGraphLaunch(graph_, streams_.front().get()), "cudaGraphLaunch");
  await();
}

// Measures each period from its first launch, and these from one to the next: CUDA gives the time
// between two events in fp32 milliseconds, exact only if they are close.
std::vector<run::Span> StreamWalk::spans(int rank, const ClockAnchor& begin,
                                         const ClockAnchor& end) const {
  const std::size_t count = order_.launches.size();
  std::vector<run::Span> list;
  if (count == 0) return list;
  std::vector<Seconds> firsts;
  const CudaEvent* last = &begin.event;
  Seconds since = 0;
  for (int p = 0; p < periods_; ++p) {
    const CudaEvent& first = times_[index(p) * count].begin;
    since += seconds_between(*last, first);
    firsts.push_back(since);
    last = &first;
  }
  const DeviceClock clock(begin, end, since + seconds_between(*last, end.event));
  for (int stream = 0; stream < plan_.streams; ++stream) {
    for (int p = 0; p < periods_; ++p) {
      const CudaEvent& first = times_[index(p) * count].begin;
      for (std::size_t i = 0; i < count; ++i) {
        const OrderedLaunch& launch = order_.launches[i];
        if (launch.stream != stream) continue;
        const Times& times = times_[index(p) * count + i];
        const Seconds from = firsts[index(p)] + seconds_between(first, times.begin);
        const Seconds to = firsts[index(p)] + seconds_between(first, times.end);
        list.push_back({p, launch.op, rank, clock.on_host(from), clock.on_host(to)});
      }
    }
  }
  return list;
}

ClockAnchor measure_clock_anchor(cudaStream_t stream) {
  constexpr int kTries = 30;
  std::vector<ClockAnchor> tries(kTries);
  std::size_t best = 0;
  for (std::size_t i = 0; i < tries.size(); ++i) {
    ClockAnchor& anchor = tries[i];
    const Seconds before = live::ControlChannel::now();
    anchor.event.record(stream);
    check_cuda(cudaEventSynchronize(anchor.event.get()), "cudaEventSynchronize");
    const Seconds after = live::ControlChannel::now();
    anchor.host = (before + after) / 2;
    anchor.error = (after - before) / 2;
    if (anchor.error < tries[best].error) best = i;
  }
  return std::move(tries[best]);
}

DeviceClock::DeviceClock(const ClockAnchor& begin, const ClockAnchor& end, Seconds between)
    : host_(begin.host), rate_(between > 0 ? (end.host - begin.host) / between : 1) {}

}  // namespace syncline::nccl_backend
