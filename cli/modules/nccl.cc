// NCCL and the kernels as a module: ranks on GPUs.
#include "backend_nccl/nccl_executor.h"
#include "cli/modules.h"
#include "live/backend.h"

namespace syncline::cli {
namespace {

std::unique_ptr<live::LiveExecutor> nccl_executor(const Workload& workload,
                                                  live::ControlChannel& channel) {
  return nccl_backend::make_nccl_executor(workload, channel);
}

live::LiveExecutorFactory nccl_with_operators(const Device& device, int channels) {
  return [device, channels](const Workload& workload, live::ControlChannel& channel) {
    nccl_backend::NcclSettings settings;
    settings.operators = &device;
    settings.max_ctas = channels;
    return nccl_backend::make_nccl_executor(workload, channel, settings);
  };
}

}  // namespace
}  // namespace syncline::cli

extern "C" void syncline_module_nccl(syncline::cli::ModuleRows& rows) {
  using namespace syncline;
  static const live::Backend nccl{cli::nccl_executor,
                                  [] { return nccl_backend::measured_kernels(); },
                                  cli::nccl_with_operators};
  rows.backend = &nccl;
}
