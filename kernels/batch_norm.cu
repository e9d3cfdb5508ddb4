#include "kernels/batch_norm.h"

#include "kernels/batch_norm_tile.h"
#include "kernels/launch.h"

namespace syncline::kernels {
namespace {

// Neighbouring blocks have neighbouring channels of the same rows.
template <int kWide>
__device__ inline ColumnThread<kWide> my_column(const BatchNorm& norm, int channel_tiles,
                                                std::int64_t rows_per_tile, int thread) {
  return column_of<kWide>(norm, static_cast<int>(blockIdx.x % channel_tiles),
                          blockIdx.x / channel_tiles, rows_per_tile, thread);
}

// The threads of a column join what they have pairwise; those of the first row write it.
template <int kWide, typename Join>
SYNCLINE_BLOCK_ALGORITHM void end_pass(KernelBlock& block, const BatchNorm& norm,
                                       const BatchNormGrid& grid, PairBlock<kWide>& pairs,
                                       Join join) {
  for (int stride = ColumnThread<kWide>::kRows / 2; stride > 0; stride /= 2) {
    block.each([&](int thread) {
      if (thread < stride * kLanes<kWide>) join(pairs, thread, stride);
    });
  }
  block.each([&](int thread) {
    if (thread >= kLanes<kWide>) return;
    const auto column = my_column<kWide>(norm, grid.channel_tiles, grid.rows_per_tile, thread);
    write_pairs(norm, column.channel, blockIdx.x / grid.channel_tiles, thread, pairs);
  });
}

template <typename T, int kWide>
__global__ void __launch_bounds__(kBlockThreads, 4)
    batch_moments_kernel(const BatchNorm norm, const BatchNormGrid grid) {
  __shared__ PairBlock<kWide> pairs;
  KernelBlock block;
  block.each([&](int thread) {
    moments_of_thread<T>(norm,
                         my_column<kWide>(norm, grid.channel_tiles, grid.rows_per_tile, thread),
                         thread, pairs);
  });
  end_pass(block, norm, grid, pairs, [](PairBlock<kWide>& all, int thread, int stride) {
    join_moments(all, thread, stride);
  });
}

template <typename T, int kWide>
__global__ void __launch_bounds__(kBlockThreads, 3)
    batch_gradient_sums_kernel(const BatchNorm norm, const BatchNormGrid grid, const T* dy) {
  __shared__ PairBlock<kWide> pairs;
  KernelBlock block;
  block.each([&](int thread) {
    gradient_sums_of_thread<T>(
        norm, dy, my_column<kWide>(norm, grid.channel_tiles, grid.rows_per_tile, thread), thread,
        pairs);
  });
  end_pass(block, norm, grid, pairs,
           [](PairBlock<kWide>& all, int thread, int stride) { join_sums(all, thread, stride); });
}

// The parts of a channel, added pairwise, and what is written of their sum.
template <typename Part, typename Write>
SYNCLINE_BLOCK_ALGORITHM void end_channels(KernelBlock& block, const BatchNorm& norm,
                                           EndPair (&parts)[kBlockThreads], Part part,
                                           Write write) {
  block.each([&](int thread) {
    const int channel = static_cast<int>(blockIdx.x) * kEndChannels + thread % kEndChannels;
    parts[thread] = {0, 0};
    if (channel < norm.channels) parts[thread] = part(channel, thread / kEndChannels);
  });
  for (int stride = kEndParts / 2; stride > 0; stride /= 2) {
    block.each([&](int thread) {
      if (thread >= stride * kEndChannels) return;
      parts[thread].first += parts[thread + stride * kEndChannels].first;
      parts[thread].second += parts[thread + stride * kEndChannels].second;
    });
  }
  block.each([&](int thread) {
    const int channel = static_cast<int>(blockIdx.x) * kEndChannels + thread;
    if (thread < kEndChannels && channel < norm.channels) write(channel, parts[thread]);
  });
}

__global__ void __launch_bounds__(kBlockThreads)
    batch_moments_end_kernel(const BatchNorm norm, const BatchNormGrid grid,
                             const RunningStatistics running) {
  __shared__ EndPair parts[kBlockThreads];
  KernelBlock block;
  end_channels(
      block, norm, parts,
      [&](int channel, int part) { return end_of_moments(norm, grid, channel, part); },
      [&](int channel, const EndPair& sum) { write_statistics(norm, running, channel, sum); });
}

__global__ void __launch_bounds__(kBlockThreads)
    batch_gradient_end_kernel(const BatchNorm norm, const BatchNormGrid grid,
                              const BatchNormGradients gradients) {
  __shared__ EndPair parts[kBlockThreads];
  KernelBlock block;
  end_channels(
      block, norm, parts,
      [&](int channel, int part) { return end_of_sums(norm, grid, channel, part); },
      [&](int channel, const EndPair& sum) { write_gradients(norm, gradients, channel, sum); });
}

template <typename T, int kWide>
__global__ void __launch_bounds__(kBlockThreads, 4)
    batch_normalise_kernel(const BatchNorm norm, int channel_tiles, T* y) {
  KernelBlock block;
  block.each([&](int thread) {
    normalise_thread(norm, y, my_column<kWide>(norm, channel_tiles, kWrittenRows, thread));
  });
}

template <typename T, int kWide>
__global__ void __launch_bounds__(kBlockThreads, 3)
    batch_gradient_kernel(const BatchNorm norm, int channel_tiles,
                          const BatchNormGradients gradients) {
  KernelBlock block;
  block.each([&](int thread) {
    gradient_of_thread<T>(norm, gradients,
                          my_column<kWide>(norm, channel_tiles, kWrittenRows, thread));
  });
}

Grid blocks_of(std::int64_t row_tiles, int channel_tiles) {
  return {static_cast<unsigned>(row_tiles * channel_tiles)};
}

Grid end_blocks(const BatchNorm& norm) {
  return {static_cast<unsigned>((norm.channels + kEndChannels - 1) / kEndChannels)};
}

Grid written_blocks(const BatchNorm& norm, int channel_tiles) {
  return blocks_of((norm.rows + kWrittenRows - 1) / kWrittenRows, channel_tiles);
}

template <typename T, int kWide>
Status forward(const BatchNorm& norm, const RunningStatistics& running, void* y,
               cudaStream_t stream) {
  const auto grid = batch_norm_grid(norm.rows, norm.channels, kWide);
  auto status = launch("batch_moments_kernel", batch_moments_kernel<T, kWide>,
                       blocks_of(grid.row_tiles, grid.channel_tiles), stream, norm, grid);
  if (!status.ok()) return status;
  status = launch("batch_moments_end_kernel", batch_moments_end_kernel, end_blocks(norm), stream,
                  norm, grid, running);
  if (!status.ok()) return status;
  return launch("batch_normalise_kernel", batch_normalise_kernel<T, kWide>,
                written_blocks(norm, grid.channel_tiles), stream, norm, grid.channel_tiles,
                static_cast<T*>(y));
}

template <typename T, int kWide>
Status backward(const BatchNorm& norm, const BatchNormGradients& gradients, cudaStream_t stream) {
  const auto grid = batch_norm_grid(norm.rows, norm.channels, kWide);
  auto status = launch("batch_gradient_sums_kernel", batch_gradient_sums_kernel<T, kWide>,
                       blocks_of(grid.row_tiles, grid.channel_tiles), stream, norm, grid,
                       static_cast<const T*>(gradients.dy));
  if (!status.ok()) return status;
  status = launch("batch_gradient_end_kernel", batch_gradient_end_kernel, end_blocks(norm), stream,
                  norm, grid, gradients);
  if (!status.ok()) return status;
  return launch("batch_gradient_kernel", batch_gradient_kernel<T, kWide>,
                written_blocks(norm, grid.channel_tiles), stream, norm, grid.channel_tiles,
                gradients);
}

template <typename T>
constexpr int kWidest = 16 / static_cast<int>(sizeof(T));

}  // namespace

Status batch_norm_forward(const BatchNorm& norm, const RunningStatistics& running, void* y,
                          cudaStream_t stream) {
  if (auto status = check_batch_norm(norm, running, y); !status.ok()) return status;
  const bool wide = goes_wide(norm, {y});
  switch (norm.type) {
    case ElementType::kBf16:
      return wide ? forward<Bf16, kWidest<Bf16>>(norm, running, y, stream)
                  : forward<Bf16, 1>(norm, running, y, stream);
    case ElementType::kFp16:
      return wide ? forward<Fp16, kWidest<Fp16>>(norm, running, y, stream)
                  : forward<Fp16, 1>(norm, running, y, stream);
    case ElementType::kFp32:
      break;
  }
  return wide ? forward<float, kWidest<float>>(norm, running, y, stream)
              : forward<float, 1>(norm, running, y, stream);
}

Status batch_norm_backward(const BatchNorm& norm, const BatchNormGradients& gradients,
                           cudaStream_t stream) {
  if (auto status = check_batch_norm_gradient(norm, gradients); !status.ok()) return status;
  const bool wide = goes_wide(norm, {gradients.dy, gradients.dx, gradients.dresidual});
  switch (norm.type) {
    case ElementType::kBf16:
      return wide ? backward<Bf16, kWidest<Bf16>>(norm, gradients, stream)
                  : backward<Bf16, 1>(norm, gradients, stream);
    case ElementType::kFp16:
      return wide ? backward<Fp16, kWidest<Fp16>>(norm, gradients, stream)
                  : backward<Fp16, 1>(norm, gradients, stream);
    case ElementType::kFp32:
      break;
  }
  return wide ? backward<float, kWidest<float>>(norm, gradients, stream)
              : backward<float, 1>(norm, gradients, stream);
}

}  // namespace syncline::kernels
