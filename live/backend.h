// Functions of one backend for live runs. Its module fills them in.
#pragma once

#include <string>

#include "live/live_executor.h"

namespace syncline::live {

struct Backend {
  LiveExecutorFactory make;  // its computation is timers
  // Returns the kernels' times on this process's device, as `calibrate kernels` reads them; null:
  // it has no device of its own.
  std::string (*kernels)() = nullptr;
  // Makes executors whose computation is the workload's operators; those without a kernel take the
  // time that `device` predicts. `channels`: blocks that a communicator may take; 0: the library's
  // choice. Null: the backend has no kernels.
  LiveExecutorFactory (*with_operators)(const Device& device, int channels) = nullptr;
};

}  // namespace syncline::live
