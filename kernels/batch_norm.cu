#include "kernels/batch_norm.h"

#include "kernels/batch_norm_tile.h"
#include "kernels/cuda_status.cuh"

namespace syncline::kernels {
namespace {

// Neighbouring blocks have neighbouring channels of the same rows.
template <int kWide>
__device__ ColumnThread<kWide> my_column(const BatchNorm& norm, int channel_tiles,
                                         std::int64_t rows_per_tile) {
  return column_of<kWide>(norm, static_cast<int>(blockIdx.x % channel_tiles),
                          blockIdx.x / channel_tiles, rows_per_tile, static_cast<int>(threadIdx.x));
}

template <typename T, int kWide>
__global__ void __launch_bounds__(kBlockThreads, 4)
    batch_moments_kernel(const BatchNorm norm, const BatchNormGrid grid) {
  __shared__ PairBlock<kWide> block;
  const int thread = static_cast<int>(threadIdx.x);
  const auto column = my_column<kWide>(norm, grid.channel_tiles, grid.rows_per_tile);
  moments_of_thread<T>(norm, column, thread, block);
  for (int stride = column.kRows / 2; stride > 0; stride /= 2) {
    __syncthreads();
    if (thread < stride * kLanes<kWide>) join_moments(block, thread, stride);
  }
  // A thread of the first row wrote its own place last.
  if (thread < kLanes<kWide>) {
    write_pairs(norm, column.channel, blockIdx.x / grid.channel_tiles, thread, block);
  }
}

template <typename T, int kWide>
__global__ void __launch_bounds__(kBlockThreads, 3)
    batch_gradient_sums_kernel(const BatchNorm norm, const BatchNormGrid grid, const T* dy) {
  __shared__ PairBlock<kWide> block;
  const int thread = static_cast<int>(threadIdx.x);
  const auto column = my_column<kWide>(norm, grid.channel_tiles, grid.rows_per_tile);
  gradient_sums_of_thread<T>(norm, dy, column, thread, block);
  for (int stride = column.kRows / 2; stride > 0; stride /= 2) {
    __syncthreads();
    if (thread < stride * kLanes<kWide>) join_sums(block, thread, stride);
  }
  if (thread < kLanes<kWide>) {
    write_pairs(norm, column.channel, blockIdx.x / grid.channel_tiles, thread, block);
  }
}

// Thread 0 .. kEndChannels - 1 of the block get the sums of their channels.
__device__ EndPair end_sum(EndPair mine) {
  __shared__ EndPair parts[kBlockThreads];
  const int thread = static_cast<int>(threadIdx.x);
  parts[thread] = mine;
  for (int stride = kEndParts / 2; stride > 0; stride /= 2) {
    __syncthreads();
    if (thread < stride * kEndChannels) {
      parts[thread].first += parts[thread + stride * kEndChannels].first;
      parts[thread].second += parts[thread + stride * kEndChannels].second;
    }
  }
  return parts[thread];
}

__global__ void __launch_bounds__(kBlockThreads)
    batch_moments_end_kernel(const BatchNorm norm, const BatchNormGrid grid,
                             const RunningStatistics running) {
  const int thread = static_cast<int>(threadIdx.x);
  const int channel = static_cast<int>(blockIdx.x) * kEndChannels + thread % kEndChannels;
  EndPair sum = {0, 0};
  if (channel < norm.channels) sum = end_of_moments(norm, grid, channel, thread / kEndChannels);
  sum = end_sum(sum);
  if (thread < kEndChannels && channel < norm.channels) {
    write_statistics(norm, running, channel, sum);
  }
}

__global__ void __launch_bounds__(kBlockThreads)
    batch_gradient_end_kernel(const BatchNorm norm, const BatchNormGrid grid,
                              const BatchNormGradients gradients) {
  const int thread = static_cast<int>(threadIdx.x);
  const int channel = static_cast<int>(blockIdx.x) * kEndChannels + thread % kEndChannels;
  EndPair sum = {0, 0};
  if (channel < norm.channels) sum = end_of_sums(norm, grid, channel, thread / kEndChannels);
  sum = end_sum(sum);
  if (thread < kEndChannels && channel < norm.channels) {
    write_gradients(norm, gradients, channel, sum);
  }
}

template <typename T, int kWide>
__global__ void __launch_bounds__(kBlockThreads, 4)
    batch_normalise_kernel(const BatchNorm norm, int channel_tiles, T* y) {
  normalise_thread(norm, y, my_column<kWide>(norm, channel_tiles, kWrittenRows));
}

template <typename T, int kWide>
__global__ void __launch_bounds__(kBlockThreads, 3)
    batch_gradient_kernel(const BatchNorm norm, int channel_tiles,
                          const BatchNormGradients gradients) {
  gradient_of_thread<T>(norm, gradients, my_column<kWide>(norm, channel_tiles, kWrittenRows));
}

unsigned blocks_of(std::int64_t row_tiles, int channel_tiles) {
  return static_cast<unsigned>(row_tiles * channel_tiles);
}

unsigned end_blocks(const BatchNorm& norm) {
  return static_cast<unsigned>((norm.channels + kEndChannels - 1) / kEndChannels);
}

std::int64_t written_tiles(const BatchNorm& norm) {
  return (norm.rows + kWrittenRows - 1) / kWrittenRows;
}

template <typename T, int kWide>
Status forward(const BatchNorm& norm, const RunningStatistics& running, void* y,
               cudaStream_t stream) {
  const auto grid = batch_norm_grid(norm.rows, norm.channels, kWide);
  batch_moments_kernel<T, kWide>
      <<<blocks_of(grid.row_tiles, grid.channel_tiles), kBlockThreads, 0, stream>>>(norm, grid);
  if (auto status = launch_status("batch_moments_kernel"); !status.ok()) return status;
  batch_moments_end_kernel<<<end_blocks(norm), kBlockThreads, 0, stream>>>(norm, grid, running);
  if (auto status = launch_status("batch_moments_end_kernel"); !status.ok()) return status;
  batch_normalise_kernel<T, kWide>
      <<<blocks_of(written_tiles(norm), grid.channel_tiles), kBlockThreads, 0, stream>>>(
          norm, grid.channel_tiles, static_cast<T*>(y));
  return launch_status("batch_normalise_kernel");
}

template <typename T, int kWide>
Status backward(const BatchNorm& norm, const BatchNormGradients& gradients, cudaStream_t stream) {
  const auto grid = batch_norm_grid(norm.rows, norm.channels, kWide);
  batch_gradient_sums_kernel<T, kWide>
      <<<blocks_of(grid.row_tiles, grid.channel_tiles), kBlockThreads, 0, stream>>>(
          norm, grid, static_cast<const T*>(gradients.dy));
  if (auto status = launch_status("batch_gradient_sums_kernel"); !status.ok()) return status;
  batch_gradient_end_kernel<<<end_blocks(norm), kBlockThreads, 0, stream>>>(norm, grid, gradients);
  if (auto status = launch_status("batch_gradient_end_kernel"); !status.ok()) return status;
  batch_gradient_kernel<T, kWide>
      <<<blocks_of(written_tiles(norm), grid.channel_tiles), kBlockThreads, 0, stream>>>(
          norm, grid.channel_tiles, gradients);
  return launch_status("batch_gradient_kernel");
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
