#include "kernels/sampled_threshold.h"

#include "kernels/dgc_launch.h"
#include "kernels/launch.h"
#include "kernels/sampled_spans.h"

namespace syncline::kernels {
namespace {

// Grids of (windows or blocks, tensors): those that a tensor does not need end at once.

__global__ void __launch_bounds__(kBlockThreads)
    sampled_window_kernel(DgcTables tables, SampledTables sampled, DgcStep step) {
  __shared__ DgcShared shared;
  KernelBlock block;
  sample_window(block, shared, tables, sampled, step, blockIdx.y, blockIdx.x);
}

__global__ void __launch_bounds__(kBlockThreads)
    sampled_count_kernel(DgcTables tables, SampledTables sampled, DgcStep step) {
  KernelBlock block;
  sampled_count_block(block, tables, sampled, step, blockIdx.y, blockIdx.x);
}

__global__ void __launch_bounds__(kBlockThreads)
    sampled_send_kernel(DgcTables tables, SampledTables sampled, DgcStep step) {
  KernelBlock block;
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
  const auto next = [&](const char* name, auto kernel, unsigned pieces) {
    if (status.ok()) {
      status = launch(name, kernel, {pieces, tensors}, stream, tables, room, step);
    }
  };
  next("sampled_window_kernel", sampled_window_kernel, kSampleWindows);
  next("sampled_count_kernel", sampled_count_kernel, kSampleBlocks);
  next("sampled_send_kernel", sampled_send_kernel, kSampleBlocks);
  return status;
}

}  // namespace syncline::kernels
