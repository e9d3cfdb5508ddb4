#include "kernels/sparse_apply.h"

#include <algorithm>

#include "kernels/launch.h"
#include "kernels/sparse_parts.h"
#include "kernels/tensor_table.h"

namespace syncline::kernels {
namespace {

constexpr int kRowsPerLaunch = 600;

struct SparseRows {
  SparseRow rows[kRowsPerLaunch];
};
static_assert(sizeof(SparseRows) + sizeof(SparseTables) + 64 <= kArgumentBytes);

__global__ void __launch_bounds__(kBlockThreads)
    sparse_prepare_kernel(SparseTables tables, const __grid_constant__ SparseRows rows,
                          std::uint32_t first) {
  KernelBlock block;
  sparse_prepare_row(block, tables, rows.rows[blockIdx.x], first + blockIdx.x);
}

__global__ void __launch_bounds__(kBlockThreads)
    sparse_check_kernel(SparseTables tables, SparseApply apply) {
  KernelBlock block;
  sparse_check_piece(block, tables, apply, blockIdx.x, static_cast<int>(blockIdx.y));
}

__global__ void __launch_bounds__(kBlockThreads, 6)
    sparse_apply_kernel(SparseTables tables, SparseApply apply) {
  __shared__ SparseShared shared;
  KernelBlock block;
  sparse_apply_part(block, shared, tables, apply, blockIdx.x);
}

__global__ void __launch_bounds__(kBlockThreads)
    sparse_apply_rank_kernel(SparseTables tables, SparseApply apply, int rank) {
  KernelBlock block;
  sparse_apply_piece(block, tables, apply, blockIdx.x, rank);
}

}  // namespace

Status sparse_prepare(SparsePlan* plan, void* workspace, std::size_t workspace_bytes,
                      cudaStream_t stream) {
  if (auto status = check_sparse_prepare(*plan, workspace, workspace_bytes); !status.ok()) {
    return status;
  }
  const SparseTables tables = sparse_tables(*plan, workspace);
  for (std::size_t first = 0; first < plan->rows.size(); first += kRowsPerLaunch) {
    const std::size_t count = std::min<std::size_t>(kRowsPerLaunch, plan->rows.size() - first);
    SparseRows chunk{};
    std::copy_n(plan->rows.begin() + static_cast<std::ptrdiff_t>(first), count, chunk.rows);
    auto status =
        launch("sparse_prepare_kernel", sparse_prepare_kernel, {static_cast<unsigned>(count)},
               stream, tables, chunk, static_cast<std::uint32_t>(first));
    if (!status.ok()) return status;
  }
  plan->workspace = workspace;
  return {};
}

Status sparse_apply(const SparsePlan& plan, const SparseApply& apply, cudaStream_t stream) {
  if (auto status = check_sparse_apply(plan, apply); !status.ok()) return status;
  auto status = clear(apply.rejected, sizeof *apply.rejected, stream);
  if (!status.ok() || plan.packed == 0 || apply.ranks == 0) return status;
  const SparseTables tables = sparse_tables(plan, plan.workspace);
  const auto pieces = static_cast<unsigned>(plan.checks);
  status = launch("sparse_check_kernel", sparse_check_kernel,
                  {pieces, static_cast<unsigned>(apply.ranks)}, stream, tables, apply);
  for (int rank = 0; rank < apply.ranks && !apply.rising && status.ok(); ++rank) {
    status = launch("sparse_apply_rank_kernel", sparse_apply_rank_kernel, {pieces}, stream, tables,
                    apply, rank);
  }
  if (!apply.rising || !status.ok()) return status;
  return launch("sparse_apply_kernel", sparse_apply_kernel, {static_cast<unsigned>(plan.parts)},
                stream, tables, apply);
}

}  // namespace syncline::kernels
