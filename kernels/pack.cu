#include "kernels/pack.h"

#include "kernels/launch.h"
#include "kernels/pack_tile.h"

namespace syncline::kernels {
namespace {

// `measure` comes with the last launch only; `partials` with all of them, where it is measured.
template <typename From, typename To, bool kWrite>
__global__ void __launch_bounds__(kBlockThreads, 5)
    pack_kernel(const __grid_constant__ PackLaunch part, std::int64_t tiles_per_chunk, float scale,
                double* partials, GradientMeasure* measure, float max_norm) {
  KernelBlock block;
  KernelBlock::Each<double> sums;
  for (std::int64_t chunk = blockIdx.x; chunk < part.chunks; chunk += gridDim.x) {
    block.each([&](int thread) {
      sums[thread] = pack_chunk<From, To, kWrite>(part.table, chunk, tiles_per_chunk, scale,
                                                  partials != nullptr, thread);
    });
    if (partials == nullptr) continue;
    const double sum = block.sum(sums);
    block.each([&](int thread) {
      if (thread == 0) partials[part.first_partial + chunk] = sum;
    });
  }
  if (measure == nullptr || !block.last_of(&measure->ticket, gridDim.x)) return;
  const std::int64_t count = part.first_partial + part.chunks;
  block.each([&](int thread) { sums[thread] = partials_of(partials, count, thread); });
  const double sum = block.sum(sums);
  block.each([&](int thread) {
    if (thread == 0) write_measure(*measure, sum, sqrt(sum), max_norm);
  });
}

template <typename From, typename To, bool kWrite>
Status launch_all(const PackPlan& plan, const PackOptions& options, cudaStream_t stream) {
  const auto kernel = pack_kernel<From, To, kWrite>;
  for (std::size_t i = 0; i < plan.launches.size(); ++i) {
    const PackLaunch& part = plan.launches[i];
    Grid grid;
    if (auto status = blocks_for(kernel, part.chunks, &grid); !status.ok()) return status;
    const bool last = i + 1 == plan.launches.size();
    auto status = launch("pack_kernel", kernel, grid, stream, part, plan.tiles_per_chunk,
                         options.scale, options.measure == nullptr ? nullptr : options.partials,
                         last ? options.measure : nullptr, options.max_norm);
    if (!status.ok()) return status;
  }
  return {};
}

template <typename From>
Status launch_from(bool write, const PackPlan& plan, const PackOptions& options,
                   cudaStream_t stream) {
  if (!write) return launch_all<From, From, false>(plan, options, stream);
  switch (options.to) {
    case ElementType::kBf16:
      return launch_all<From, Bf16, true>(plan, options, stream);
    case ElementType::kFp16:
      return launch_all<From, Fp16, true>(plan, options, stream);
    case ElementType::kFp32:
      break;
  }
  return launch_all<From, float, true>(plan, options, stream);
}

}  // namespace

Status pack(std::span<const PackedTensor> tensors, const PackOptions& options,
            cudaStream_t stream) {
  if (auto status = check_pack(tensors, options); !status.ok()) return status;
  const PackPlan plan = plan_pack(tensors, options);
  if (plan.launches.empty()) return {};
  const PackTable& table = plan.launches[0].table;
  const bool write = table.count > 0 && table.entries[0].to != nullptr;
  switch (options.from) {
    case ElementType::kBf16:
      return launch_from<Bf16>(write, plan, options, stream);
    case ElementType::kFp16:
      return launch_from<Fp16>(write, plan, options, stream);
    case ElementType::kFp32:
      break;
  }
  return launch_from<float>(write, plan, options, stream);
}

}  // namespace syncline::kernels
