// The NCCL executor: this process is one rank with one GPU and carries the plan out there. A CUDA
// stream for each of the plan's streams, a communicator for each communicating stream and grouping
// of ranks, CUDA events for dependencies; one host thread launches the plan's list, period after
// period, without waiting between them. Gradients are real data in device memory.
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
