#include "kernels/sampled_threshold.h"

#include "kernels/block.cuh"
#include "kernels/cuda_status.cuh"
#include "kernels/dgc_launch.h"
#include "kernels/sampled_spans.h"

namespace syncline::kernels {
namespace {

// Grids of (windows or blocks, tensors): those that a tensor does not need end at once.

__global__ void __launch_bounds__(kBlockThreads)
    sampled_window_kernel(DgcTables tables, SampledTables sampled, DgcStep step) {
  __shared__ DgcShared shared;
  CudaBlock block;
  sample_window(block, shared, tables, sampled, step, blockIdx.y, blockIdx.x);
}

__global__ void __launch_bounds__(kBlockThreads)
    sampled_count_kernel(DgcTables tables, SampledTables sampled, DgcStep step) {
  CudaBlock block;
  sampled_count_block(block, tables, sampled, step, blockIdx.y, blockIdx.x);
}

__global__ void __launch_bounds__(kBlockThreads)
    sampled_send_kernel(DgcTables tables, SampledTables sampled, DgcStep step) {
  CudaBlock block;
  sampled_send_block(block, tables, sampled, step, blockIdx.y, blockIdx.x);
}

}  // namespace

Status sampled_step(const DgcPlan& plan, const SampledPlan& sampled, void* workspace,
                    std::size_t workspace_bytes, const DgcStep& step, cudaStream_t stream) {
  auto status = check_sampled_step(plan, sampled, workspace, workspace_bytes, step);
  if (!status.ok() || plan.rows.empty()) return status;
  if (status = launch_dgc_update(plan, step, false, stream); !status.ok()) return status;
  const DgcTables tables = dgc_tables(plan, plan.workspace);
  const SampledTables room = sampled_tables(sampled, workspace);
  const auto tensors = static_cast<unsigned>(plan.rows.size());
  sampled_window_kernel<<<dim3(kSampleWindows, tensors), kBlockThreads, 0, stream>>>(tables, room,
                                                                                     step);
  if (status = launch_status("sampled_window_kernel"); !status.ok()) return status;
  sampled_count_kernel<<<dim3(kSampleBlocks, tensors), kBlockThreads, 0, stream>>>(tables, room,
                                                                                   step);
  if (status = launch_status("sampled_count_kernel"); !status.ok()) return status;
  sampled_send_kernel<<<dim3(kSampleBlocks, tensors), kBlockThreads, 0, stream>>>(tables, room,
                                                                                  step);
  return launch_status("sampled_send_kernel");
}

}  // namespace syncline::kernels
