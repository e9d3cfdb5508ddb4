// The NCCL executor: this process is one rank with one GPU. Each stream of the plan is a CUDA
// stream; each pair of communicating stream and grouping has a communicator; dependencies are CUDA
// events. One host thread launches the plan's list, period after period, without waiting between
// them. Gradients are real data in device memory.
#pragma once

#include <memory>
#include <string>

#include "live/live_executor.h"

namespace syncline::nccl_backend {

struct NcclSettings {
  int device = -1;     // CUDA's number; -1: the rank's index among the ranks of this machine
  int max_ctas = 0;    // CTAs (blocks) per communicator at most; 0: NCCL's choice, or kSharedCtas
  bool graph = false;  // the whole run is captured as one CUDA graph and launched at once
  // Runs the workload's operators as kernels. Operators without a kernel take the time that this
  // device predicts. Null: all computation is a timer.
  const Device* operators = nullptr;
  // Asks NCCL for the plan's algorithm, if it has one like it.
  bool follow_algorithm = true;

  // CTAs if ranks share a GPU: the kernels of all of them must fit at once.
  static constexpr int kSharedCtas = 2;
};

// Returns the executor. All ranks must call this, and then run() for the same plans in the same
// order. `input` of run() holds this rank's gradients, exchanged in every period; the others' may
// be empty. `workload` and `channel` must outlive it.
std::unique_ptr<live::LiveExecutor> make_nccl_executor(const Workload& workload,
                                                       live::ControlChannel& channel,
                                                       NcclSettings settings = {});

// Returns checks and times of the kernels on this process's GPU, as JSON like make gpu-check's
// (kernels/check/measure.h). If not `large`, sizes are small and the JSON is marked as a rehearsal.
// Throws MachineError without a GPU or if a check fails.
std::string measured_kernels(bool large = true);

// Returns the reason why this process cannot run it: not built in, no driver, no device. Empty: it
// can.
std::string why_no_nccl();

}  // namespace syncline::nccl_backend
