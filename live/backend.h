// Functions of one backend for live runs. Its module sets them.
#pragma once

#include <string>

#include "live/live_executor.h"

namespace syncline::live {

struct Backend {
  LiveExecutorFactory make;  // Makes executors that compute by timers.
  // Returns the kernels' times on this process's device, as `calibrate kernels` reads them; null:
  // the backend has no device of its own.
  std::string (*kernels)() = nullptr;
  // Makes executors that run the workload's operators; one without a kernel takes the time that
  // `device` predicts. `channels`: blocks per communicator; 0: the library's choice. Null: the
  // backend has no kernels.
  LiveExecutorFactory (*with_operators)(const Device& device, int channels) = nullptr;
};

}  // namespace syncline::live
