#include <cuda_runtime.h>

#include <ctime>

#include "backend_nccl/device.h"
#include "backend_nccl/nccl_executor.h"
#include "kernels/check/measure.h"

namespace syncline::nccl_backend {

std::string measured_kernels(bool large) {
  const std::string reason = why_no_nccl();
  if (!reason.empty()) throw MachineError("the kernels are not measured: " + reason);
  kernels::Checks checks(large);
  kernels::check_all(checks);
  for (const kernels::CheckedCase& checked : checks.cases()) {
    if (checked.passed) continue;
    throw MachineError("a kernel's result is wrong on this GPU: " + checked.name + ": " +
                       checked.detail);
  }
  const kernels::Measurements measured = kernels::measure_kernels(large);
  cudaDeviceProp properties{};
  int device = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  check_cuda(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  const std::time_t now = std::time(nullptr);
  char date[32] = {};
  std::strftime(date, sizeof date, "%Y-%m-%d", std::gmtime(&now));
  return kernels::as_json(measured, checks, properties.name, date, "", !large);
}

}  // namespace syncline::nccl_backend
