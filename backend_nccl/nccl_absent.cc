#include "backend_nccl/nccl_executor.h"
#include "core/base/error.h"

namespace syncline::nccl_backend {

std::string why_no_nccl() { return "this program was built without CUDA or without NCCL"; }

std::string measured_kernels(bool) { throw MachineError("no kernels: " + why_no_nccl()); }

std::unique_ptr<live::LiveExecutor> make_nccl_executor(const Workload&, live::ControlChannel&,
                                                       NcclSettings) {
  throw MachineError("--backend nccl: " + why_no_nccl());
}

}  // namespace syncline::nccl_backend
