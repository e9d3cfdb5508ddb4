// The NCCL executor: this process is one rank with one GPU and carries the plan out there. A CUDA
// stream for each of the plan's streams, a communicator for each communicating stream and grouping
// of ranks, CUDA events for dependencies; one host thread launches the plan's list, period after
// period, without waiting between them. Gradients are real data in device memory.
//
//   computation   time passes on the compute stream (kernels/timer.h), or the workload's operators
//                 run as kernels (operator_load.h); backward passes write their gradients by device
//                 copies
//   buckets       views of the bucket where the plan allows it; otherwise packed, cast and unpacked
//                 by one kernel (kernels/pack.h)
//   collectives   NCCL's own, in the bucket's number format. NCCL chooses algorithm and protocol,
//                 except that an all-reduce by ring or double binary tree is asked for by NCCL_ALGO
//   sparse codecs on the stream of their operation: momentum correction, selection and packing
//                 (kernels/dgc_step.h), NCCL's all-gather, the sum (kernels/sparse_apply.h). Every
//                 step begins with nothing waiting, as it begins with the same gradients
//   staged        rows of sparse gradients, and fp64 outside of views: copied to the host, filled
//                 or read there, and copied back. Such a step's time is not a GPU's
//
// Outcome: the timeline of all ranks on rank 0's clock, on every rank alike; gradients of this
// rank. No bytes sent: NCCL does not say. Times are CUDA events, placed on the host's clock by an
// event at the beginning and one at the end that the host has waited for.
//
// Nothing hangs: communicators are made and used without blocking, and whoever waits looks for
// errors of NCCL, for ranks that have failed and at the clock; then the communicators are aborted
// and MachineError names the call, the operation and the rank. With `graph` communicators block in
// NCCL's own calls, which only the control channel's failure callback can end.
//
// Several ranks on one GPU (found out by the ranks' exchange of devices) talk through sockets as if
// they were on machines of their own. What their times are worth, hardware() says.
//
// Where the program is built without CUDA or NCCL, or there is no device, the factory throws
// MachineError.
#pragma once

#include <memory>
#include <string>

#include "live/live_executor.h"

namespace syncline::nccl_backend {

struct NcclSettings {
  int device = -1;     // CUDA's number; -1: by the rank's place among those of this machine
  int max_ctas = 0;    // blocks that one communicator may take; 0: NCCL's choice, or kSharedCtas
  bool graph = false;  // the whole run is captured as one CUDA graph and launched at once
  // Computation is the workload's operators as kernels; those without one pass the time that this
  // device predicts. Null: time passes.
  const Device* operators = nullptr;
  // Ask NCCL for the plan's algorithm where it has one like it.
  bool follow_algorithm = true;

  // Where ranks share a GPU: the kernels of all of them must have room at once.
  static constexpr int kSharedCtas = 2;
};

// `input` of run() holds this rank's gradients in its place; the others' may be empty. The same
// input is exchanged in every period. `workload` and `channel` must outlive it. All ranks call the
// factory, and then run() for the same plans in the same order.
std::unique_ptr<live::LiveExecutor> make_nccl_executor(const Workload& workload,
                                                       live::ControlChannel& channel,
                                                       NcclSettings settings = {});

// The kernels checked and timed on a GPU of this process, as make gpu-check writes it
// (kernels/check/measure.h). Of small sizes it is a rehearsal. Throws MachineError where there is
// no GPU, or a check fails.
std::string measured_kernels(bool large = true);

// Why there can be no such executor in this process: not built in, no driver, no device. Empty:
// there can.
std::string why_no_nccl();

}  // namespace syncline::nccl_backend
