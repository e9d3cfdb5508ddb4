// One step of Deep Gradient Compression (Lin et al., ICLR 2018) for all tensors of a plan:
//
//   u' = m u + g          v' = v + u'             (momentum correction and accumulation)
//   S  = the min(kept, n) largest |v'|, ties to the lower index
//   sent: (i, v'_i) for i in S, in index order;   u' and v' become 0 there (momentum factor
//   masking)
//
// in fp32, every operation rounded by itself in the order written; kernels/reference/optimizers.h
// is the same on the host and agrees to the bit. Equal inputs give equal bits, in every run, on
// every path of the selection.
//
// The selection, bytes an element:
//   speculative  20   R g u v, W u v. Elements of at least 0.95 x the last step's threshold are
//                     listed on the way; holds if kept <= listed <= room in the list
//   exact        24   the update counts a histogram of magnitudes, then v is read again to list
//   recount      28   the guess was too high: v is read once more to count
//   whole        36   too many candidates (ties; more than one in 32 kept): v is its own list,
//                     read four times
// plus about 0.04 for the lists and 0.07 for what is sent at kept = n / 1000. Which one it is, the
// device decides for each tensor by itself; no host waits. A launch that has nothing to do ends
// at once.
//
// Floors on an H200 at 4.8 TB/s, microseconds for 25.5 M, 110 M and 340 M elements: speculative
// 106, 458, 1417; exact 128, 550, 1700. Seven launches for any number of tensors.
//
// An element whose v' would not be finite keeps its old u and v, and the report's `held` says that
// there was one; a v that is NaN or infinite is never sent. So nothing not finite ever enters the
// state or a message.
#include "kernels/dgc_step.h"

#include "kernels/dgc_spans.h"
#include "kernels/launch.h"

namespace syncline::kernels {
namespace {

// Rows travel to the device as an argument, which may have 32764 bytes: no copy whose source would
// have to live on.
constexpr int kRowsPerLaunch = 300;

struct DgcRows {
  DgcRow rows[kRowsPerLaunch];
};
static_assert(sizeof(DgcRows) + sizeof(DgcTables) + 64 <= kArgumentBytes);

__global__ void __launch_bounds__(kBlockThreads)
    dgc_prepare_kernel(DgcTables tables, const __grid_constant__ DgcRows rows,
                       std::uint32_t first) {
  KernelBlock block;
  dgc_prepare_row(block, tables, rows.rows[blockIdx.x], first + blockIdx.x);
}

// A thread has 6 loads of 16 bytes in flight: 123 KB on a multiprocessor, where 4.8 TB/s over 132
// of them at 700 ns need 26 KB.
__global__ void __launch_bounds__(kBlockThreads, 5)
    dgc_update_kernel(DgcTables tables, DgcStep step) {
  __shared__ DgcShared shared;
  KernelBlock block;
  dgc_update_span(block, shared, tables, step, blockIdx.x);
}

__global__ void __launch_bounds__(kBlockThreads, 5) dgc_recount_kernel(DgcTables tables) {
  __shared__ DgcShared shared;
  KernelBlock block;
  dgc_recount_span(block, shared, tables, blockIdx.x);
}

__global__ void __launch_bounds__(kBlockThreads, 5) dgc_collect_kernel(DgcTables tables) {
  __shared__ DgcShared shared;
  KernelBlock block;
  dgc_collect_span(block, shared, tables, blockIdx.x);
}

__global__ void __launch_bounds__(kBlockThreads, 5) dgc_refine_kernel(DgcTables tables, int shift) {
  __shared__ DgcShared shared;
  KernelBlock block;
  dgc_refine_span(block, shared, tables, shift, blockIdx.x);
}

__global__ void __launch_bounds__(kBlockThreads, 5) dgc_count_kernel(DgcTables tables) {
  __shared__ DgcShared shared;
  KernelBlock block;
  dgc_count_span(block, shared, tables, blockIdx.x);
}

__global__ void __launch_bounds__(kBlockThreads, 5)
    dgc_write_kernel(DgcTables tables, DgcStep step) {
  __shared__ DgcShared shared;
  KernelBlock block;
  dgc_write_span(block, shared, tables, step, blockIdx.x);
}

}  // namespace

Status dgc_prepare(DgcPlan* plan, void* workspace, cudaStream_t stream) {
  const DgcTables tables = dgc_tables(*plan, workspace);
  for (std::size_t first = 0; first < plan->rows.size(); first += kRowsPerLaunch) {
    const std::size_t count = std::min<std::size_t>(kRowsPerLaunch, plan->rows.size() - first);
    DgcRows chunk{};
    std::copy_n(plan->rows.begin() + static_cast<std::ptrdiff_t>(first), count, chunk.rows);
    auto status = launch("dgc_prepare_kernel", dgc_prepare_kernel, {static_cast<unsigned>(count)},
                         stream, tables, chunk, static_cast<std::uint32_t>(first));
    if (!status.ok()) return status;
  }
  plan->workspace = workspace;
  return {};
}

Status dgc_step(const DgcPlan& plan, const DgcStep& step, cudaStream_t stream) {
  if (plan.spans == 0) return {};
  const DgcTables tables = dgc_tables(plan, plan.workspace);
  const LaunchGrid grid{static_cast<unsigned>(plan.spans)};
  Status status = launch("dgc_update_kernel", dgc_update_kernel, grid, stream, tables, step);
  const auto next = [&](const char* name, auto kernel, auto... more) {
    if (status.ok()) status = launch(name, kernel, grid, stream, tables, more...);
  };
  next("dgc_recount_kernel", dgc_recount_kernel);
  next("dgc_collect_kernel", dgc_collect_kernel);
  next("dgc_refine_kernel", dgc_refine_kernel, 10);
  next("dgc_refine_kernel", dgc_refine_kernel, 0);
  next("dgc_count_kernel", dgc_count_kernel);
  next("dgc_write_kernel", dgc_write_kernel, step);
  return status;
}

}  // namespace syncline::kernels
