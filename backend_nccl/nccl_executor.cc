//   computation   a timer on the compute stream (kernels/kernels.h), or the workload's operators as
//                 kernels (operator_load.h); backward passes write their gradients by device copies
//   buckets       views of the bucket if the plan allows it; otherwise packed, cast and unpacked by
//                 one kernel (kernels/kernels.h)
//   collectives   NCCL's own, in the bucket's number format. NCCL chooses algorithm and protocol,
//                 except that NCCL_ALGO asks for an all-reduce's ring or double binary tree
//   sparse codecs on the stream of their operation: momentum correction, selection and packing
//                 (kernels/dgc_step.h), NCCL's all-gather, the sum (kernels/sparse_apply.h). Every
//                 step begins with an empty residual, as it begins with the same gradients
//   staged        rows of sparse gradients, and fp64 outside of views: copied to the host, filled
//                 or read there, and copied back. Such a step's time is not a GPU's
//
// The outcome is the timeline of all ranks on rank 0's clock, the same on every rank, and this
// rank's gradients. Bytes sent are missing: NCCL does not report them. Times are CUDA events on the
// host's clock, anchored by one event at the beginning and one at the end.
//
// No wait hangs: communicators are created and used without blocking, and every wait checks NCCL's
// errors, failed ranks and the clock. Then the communicators are aborted and MachineError names the
// call, the operation and the rank. With `graph`, communicators block in NCCL's own calls, which
// only the control channel's failure callback can end.
//
// Several ranks on one GPU (the ranks exchange their devices to find out) talk through sockets as
// if on separate machines. hardware() says how far to trust their times.
//
// The factory throws MachineError if the program was built without CUDA or NCCL, or has no device.
#include "backend_nccl/nccl_executor.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <optional>

#include "backend_nccl/communicators.h"
#include "backend_nccl/device_work.h"
#include "backend_nccl/operator_load.h"
#include "backend_nccl/stream_walk.h"
#include "core/base/index.h"
#include "kernels/kernels.h"
#include "live/live_executor.h"

namespace syncline::nccl_backend {
namespace {

// Returns "13.0" for 13000 and, below, "2.28.9" for 22809.
std::string cuda_version(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}
std::string nccl_version(int number) {
  return std::to_string(number / 10000) + "." + std::to_string(number / 100 % 100) + "." +
         std::to_string(number % 100);
}

bool passes_time(const plan::Work& work) {
  const auto reason = plan::reason_of(work);
  return std::holds_alternative<plan::Compute>(work) || reason == plan::Busy::Reason::kHost ||
         reason == plan::Busy::Reason::kTick;
}

// Returns, by operation, 1 if it continues directly after a timed operation on its stream, without
// a wait in between.
std::vector<char> follows_of(const plan::Plan& plan, const LaunchOrder& order) {
  std::vector<plan::OpId> last(index(plan.streams), -1);
  for (const OrderedLaunch& launch : order.launches) last[index(launch.stream)] = launch.op;
  std::vector<char> follows(plan.ops.size(), 0);
  for (const OrderedLaunch& launch : order.launches) {
    plan::OpId& before = last[index(launch.stream)];  // may be the previous period's last
    const plan::Work& work = plan.ops[index(before)].work;
    const bool timed = passes_time(work) && plan::seconds_of(work) > 0;
    follows[index(launch.op)] = launch.waits.empty() && timed ? 1 : 0;
    before = launch.op;
  }
  return follows;
}

// Timers in place of computation, one per stream.
class Computation {
 public:
  explicit Computation(int streams)
      : timers_(CudaMemory::Where::kDevice, index(streams) * sizeof(kernels::TimerState)),
        bytes_(index(streams) * sizeof(kernels::TimerState)) {
    reset();
  }

  void reset() {
    check_cuda(cudaMemset(timers_.data(), 0, bytes_), "cudaMemset");
    check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }

  // Lets `seconds` pass on the stream, and does `inside` during that time.
  template <typename Inside>
  void pass(plan::StreamId id, Seconds seconds, bool follows, cudaStream_t stream, Inside inside) {
    if (seconds <= 0) return inside();
    auto* timer = reinterpret_cast<kernels::TimerState*>(timers_.data()) + id;
    constexpr double kNano = 1e9;
    check_kernel(kernels::timer_begin(timer, follows, stream));
    inside();
    check_kernel(kernels::timer_end(timer, std::llround(seconds * kNano), stream));
  }

 private:
  CudaMemory timers_;
  std::size_t bytes_;
};

class NcclExecutor final : public live::LiveExecutor {
 public:
  NcclExecutor(const Workload& workload, live::ControlChannel& channel,
               const NcclSettings& settings)
      : workload_(workload),
        channel_(channel),
        settings_(settings),
        device_(choose_device(channel, settings.device)) {
    const bool shared = device_.ranks_on_device > 1;
    set_environment(channel, shared);
    communicators_.emplace(channel, settings, shared);
    if (settings.operators != nullptr) operators_.emplace(workload, *settings.operators);
    hardware_ = describe();
  }

  std::string_view name() const override { return "nccl"; }
  Seconds clock_error() const override { return clock_error_; }
  std::string hardware() const override { return hardware_; }
  bool shares_device() const override { return device_.ranks_on_device > 1; }

  run::Outcome run(const plan::Plan& plan, const run::Gradients& input, int periods) override {
    assert(plan.ranks == channel_.ranks() && "a plan for as many ranks as have joined");
    if (plan.roles > 1) {
      throw InputError("a pipeline runs on --backend gloo: on GPUs its stages do not yet");
    }
    if (!failure_.empty()) throw MachineError(failure_);
    try {
      return carry_out(plan, input, periods);
    } catch (const DeviceError& error) {
      failure_ = "nccl, rank " + std::to_string(channel_.rank()) + ": " + error.what();
      communicators_->abort();
      throw live::PeerError(failure_);
    } catch (const std::exception& error) {
      failure_ = error.what();
      communicators_->abort();
      throw MachineError(failure_);
    }
  }

 private:
  std::string describe() const {
    int nccl = 0;
    int runtime = 0;
    int driver = 0;
    check_nccl(ncclGetVersion(&nccl), "ncclGetVersion");
    check_cuda(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
    check_cuda(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
    std::string text = device_.summary + "; NCCL " + nccl_version(nccl) + ", CUDA " +
                       cuda_version(runtime) + ", driver for CUDA " + cuda_version(driver);
    if (device_.ranks_on_device > 1) {
      text += "; " + std::to_string(device_.ranks_on_device) +
              " ranks on one GPU talk through sockets, and their kernels take turns (unless MPS "
              "runs): times are those of the network only where it is slow enough to decide, "
              "gigabits a second; the GPU's are not those of one GPU a rank";
    }
    if (operators_) text += "; " + operators_->describe();
    if (settings_.graph) text += "; captured as a CUDA graph";
    return text;
  }

  run::Outcome carry_out(const plan::Plan& plan, const run::Gradients& input, int periods) {
    const run::RankGradients& own = input[index(channel_.rank())];
    const LaunchOrder order = launch_order(plan);
    if (plan.ranks > 1) communicators_->prepare(order.communicators);
    Computation computation(plan.streams);
    if (operators_) operators_->prepare(plan);
    DeviceWork work(plan, workload_, channel_.rank(), own, *communicators_);
    follows_ = follows_of(plan, order);
    StreamWalk walk(
        plan, order, channel_, *communicators_,
        [&](const OrderedLaunch& launch, cudaStream_t stream) {
          carry_out(plan, launch, stream, computation, work);
        },
        [&](const OrderedLaunch& launch) {
          return (operators_ ? operators_->commands(launch.op) : 0) + work.commands(launch.op);
        },
        [&](plan::OpId op) { return plan::describe(plan.ops[index(op)], plan, workload_); },
        periods);
    try {
      return measured(plan, own, periods, walk, work, computation);
    } catch (...) {
      // Work under way must end before its memory is freed. Only an abort ends kernels that wait
      // for other ranks.
      communicators_->abort();
      cudaDeviceSynchronize();
      throw;
    }
  }

  // Launches one operation. Encoding, decoding and copying take their real time, not the plan's.
  void carry_out(const plan::Plan& plan, const OrderedLaunch& launch, cudaStream_t stream,
                 Computation& computation, DeviceWork& work) {
    const plan::Work& what = plan.ops[index(launch.op)].work;
    const auto act = [&] { work.carry_out(launch.op, launch.communicator, stream); };
    if (operators_ && std::holds_alternative<plan::Compute>(what)) {
      operators_->run(launch.op, stream, [&](Seconds seconds, cudaStream_t on) {
        computation.pass(launch.stream, seconds, false, on, [] {});
      });
      return act();
    }
    const Seconds seconds = passes_time(what) ? plan::seconds_of(what) : 0;
    computation.pass(launch.stream, seconds, follows_[index(launch.op)] != 0, stream, act);
  }

  run::Outcome measured(const plan::Plan& plan, const run::RankGradients& own, int periods,
                        StreamWalk& walk, DeviceWork& work, Computation& computation) {
    if (settings_.graph) {
      // NCCL connects at a communicator's first use, which a capture should not see.
      channel_.barrier(live::ControlChannel::kPatient);
      walk.run(1);
      walk.capture(periods);
      work.load();
      computation.reset();
    }
    channel_.barrier(live::ControlChannel::kPatient);
    live::ClockOffset before = channel_.clock();
    const cudaStream_t stream = walk.stream(plan::kComputeStream);
    const ClockAnchor begin = measure_clock_anchor(stream);
    channel_.barrier();
    settings_.graph ? walk.run_captured() : walk.run(periods);
    const ClockAnchor end = measure_clock_anchor(stream);
    live::ClockOffset after = channel_.clock();

    // The GPU's clock adds to the errors of the ranks' clocks.
    before.error += begin.error;
    after.error += end.error;
    run::Outcome outcome;
    outcome.timeline = live::exchange_timelines(channel_, walk.spans(channel_.rank(), begin, end),
                                                plan, periods, before, after);
    clock_error_ = live::worst_clock_error(channel_, before, after);
    // NCCL does not report the bytes it sends: none are given rather than a zero.
    outcome.gradients.resize(index(plan.ranks));
    outcome.gradients[index(channel_.rank())] = work.result(own);
    return outcome;
  }

  const Workload& workload_;
  live::ControlChannel& channel_;
  const NcclSettings settings_;
  DevicePlace device_;
  std::optional<Communicators> communicators_;
  std::optional<OperatorLoad> operators_;
  std::vector<char> follows_;  // per operation of the plan under way
  std::string hardware_;
  std::string failure_;
  Seconds clock_error_ = 0;
};

}  // namespace

std::string why_no_nccl() {
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  static_cast<void>(cudaGetLastError());
  if (error != cudaSuccess) {
    return std::string("no GPU: cudaGetDeviceCount: ") + cudaGetErrorString(error);
  }
  if (devices == 0) return "no GPU: cudaGetDeviceCount finds none";
  try {
    int version = 0;
    check_nccl(ncclGetVersion(&version), "ncclGetVersion");
  } catch (const DeviceError& missing) {
    return std::string("no NCCL: ") + missing.what();
  }
  return "";
}

std::unique_ptr<live::LiveExecutor> make_nccl_executor(const Workload& workload,
                                                       live::ControlChannel& channel,
                                                       NcclSettings settings) {
  const std::string reason = why_no_nccl();
  if (!reason.empty()) throw MachineError("--backend nccl: " + reason);
  try {
    return std::make_unique<NcclExecutor>(workload, channel, settings);
  } catch (const DeviceError& error) {
    throw live::PeerError("nccl, rank " + std::to_string(channel.rank()) + ": " + error.what());
  }
}

}  // namespace syncline::nccl_backend
