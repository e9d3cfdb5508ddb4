// The backward pass needs only x (and the residual): it computes the relu's input again, bit for
// bit like the forward pass, and reads no y.
//
// Bytes per element, read and written, with 2-byte elements: forward 6 (x twice, y), with residual
// 8; backward 10 (x and dy twice, dx), with residual 16 (residual twice and its gradient too). As
// single kernels forward takes 10 and 16. At an H200's 4.8 TB/s (data sheet) 205 M elements take at
// least 256 us forward, 342 with residual, 427 and 683 back. A plane that stays in the L2 cache is
// read from memory once.
//
// Sums have a fixed shape that depends only on rows and channels: the same bits in every run.
// Variances are sums of squared distances (Chan, Golub and LeVeque 1983), so that a large mean
// costs no accuracy. Channels that are a multiple of 8 (4 for fp32), at aligned addresses, go 16
// bytes at a time; others go element by element.
#include "kernels/batch_norm.h"

#include <cmath>
#include <initializer_list>
#include <type_traits>

#include "kernels/launch.h"

namespace syncline::kernels {
namespace {

// A block is a rectangle of threads, kLanes wide along the channels (each thread kWide of them) and
// kBlockThreads / kLanes high along the rows. A tile is these channels and `rows_per_tile` rows. A
// pass over rows gives two numbers per channel and tile (forward mean and squared distance,
// backward two sums). The threads of a column join theirs pairwise in shared memory.

// The division of the work, which depends only on the shape.
struct BatchNormGrid {
  std::int64_t rows_per_tile;  // rows per tile in the passes that sum
  std::int64_t row_tiles;      // at most 512, so that the final sums are short
  int channel_tiles;
};

// Rows per block in the passes that write.
constexpr std::int64_t kWrittenRows = 128;

template <int kWide>
constexpr int kLanes = kWide > 1 ? 8 : 32;

inline BatchNormGrid batch_norm_grid(std::int64_t rows, std::int32_t channels, int wide) {
  constexpr std::int64_t kMinRows = 128;
  constexpr std::int64_t kMaxTiles = 512;
  const std::int64_t even = (rows + kMaxTiles - 1) / kMaxTiles;
  const std::int64_t rounded = (even + 31) / 32 * 32;
  BatchNormGrid grid;
  grid.rows_per_tile = rounded > kMinRows ? rounded : kMinRows;
  grid.row_tiles = (rows + grid.rows_per_tile - 1) / grid.rows_per_tile;
  const int width = (wide > 1 ? 8 : 32) * wide;
  grid.channel_tiles = (channels + width - 1) / width;
  return grid;
}

// The rows and channels that a thread covers.
template <int kWide>
struct ColumnThread {
  int channel;  // its first; may be beyond the last: then it has no rows
  std::int64_t row;
  std::int64_t end;
  static constexpr int kRows = kBlockThreads / kLanes<kWide>;  // the distance between its rows
};

template <int kWide>
SYNCLINE_HOST_DEVICE inline ColumnThread<kWide> column_of(const BatchNorm& norm, int channel_tile,
                                                          std::int64_t row_tile,
                                                          std::int64_t rows_per_tile, int thread) {
  constexpr int kWidth = kLanes<kWide>;
  ColumnThread<kWide> column;
  column.channel = (channel_tile * kWidth + thread % kWidth) * kWide;
  const std::int64_t begin = row_tile * rows_per_tile;
  column.row = begin + thread / kWidth;
  column.end = begin + rows_per_tile < norm.rows ? begin + rows_per_tile : norm.rows;
  if (column.channel >= norm.channels) column.end = column.row;
  return column;
}

// A thread's channels of one row, as they are in memory: prefetched rows take half the registers
// that way.
template <typename T, int kWide>
struct RawChannels {
  static constexpr bool kOne = kWide == 1;
  using Held = std::conditional_t<kOne, T, Word<kOne ? 16 : kWide * sizeof(T)>>;
  Held held = {};  // zeros

  SYNCLINE_HOST_DEVICE void load(const T* from) {
    if constexpr (kOne) {
      held = *from;
    } else {
      held = load_word<Reuse::kKeep>(reinterpret_cast<const Held*>(from));
    }
  }

  SYNCLINE_HOST_DEVICE void widen(float (&to)[kWide]) const {
    T elements[kWide];
    memcpy(elements, &held, sizeof elements);
    SYNCLINE_UNROLL
    for (int c = 0; c < kWide; ++c) to[c] = to_float(elements[c]);
  }
};

// Calls each(index of the row's first element, values) for all rows of a thread, and loads kAtOnce
// rows ahead. The last of several arrays may be null; its values are then 0.
template <int kAtOnce, int kWide, typename T, int kArrays, typename F>
SYNCLINE_HOST_DEVICE inline void each_row(const BatchNorm& norm, const ColumnThread<kWide>& column,
                                          const T* const (&arrays)[kArrays], F&& each) {
  constexpr std::int64_t kRows = ColumnThread<kWide>::kRows;
  for (std::int64_t row = column.row; row < column.end; row += kAtOnce * kRows) {
    RawChannels<T, kWide> raw[kAtOnce][kArrays];
    SYNCLINE_UNROLL
    for (int i = 0; i < kAtOnce; ++i) {
      const std::int64_t at = (row + i * kRows) * norm.channels + column.channel;
      if (row + i * kRows < column.end) {
        SYNCLINE_UNROLL
        for (int a = 0; a < kArrays; ++a) {
          const bool given = a == 0 || a + 1 < kArrays || arrays[a] != nullptr;
          if (given) raw[i][a].load(arrays[a] + at);
        }
      }
    }
    SYNCLINE_UNROLL
    for (int i = 0; i < kAtOnce; ++i) {
      if (row + i * kRows < column.end) {
        float values[kArrays][kWide];
        SYNCLINE_UNROLL
        for (int a = 0; a < kArrays; ++a) raw[i][a].widen(values[a]);
        each((row + i * kRows) * norm.channels + column.channel, values);
      }
    }
  }
}

template <int kWide, typename T>
SYNCLINE_HOST_DEVICE inline void store_channels(T* to, const float (&from)[kWide]) {
  if constexpr (kWide == 1) {
    *to = from_float<T>(from[0]);
  } else {
    store_vector<Reuse::kKeep>(to, from);
  }
}

// Two numbers for each channel of each thread, and the number of rows in them.
template <int kWide>
struct PairBlock {
  float first[kBlockThreads][kWide];
  float second[kBlockThreads][kWide];
  float rows[kBlockThreads];
};

// Computes mean and squared distance of this thread's rows. Distances are relative to its first
// row, which is about as near to the mean as the others: a mean far from zero costs no accuracy.
template <typename T, int kWide>
SYNCLINE_HOST_DEVICE inline void moments_of_thread(const BatchNorm& norm,
                                                   const ColumnThread<kWide>& column, int thread,
                                                   PairBlock<kWide>& block) {
  float pivot[kWide] = {};
  float sum[kWide] = {};
  float squares[kWide] = {};
  std::int64_t count = 0;
  const T* const arrays[] = {static_cast<const T*>(norm.x)};
  each_row<4>(norm, column, arrays, [&](std::int64_t, const float(&values)[1][kWide]) {
    SYNCLINE_UNROLL
    for (int c = 0; c < kWide; ++c) {
      if (count == 0) pivot[c] = values[0][c];
      const float distance = values[0][c] - pivot[c];
      sum[c] += distance;
      squares[c] += distance * distance;
    }
    ++count;
  });
  const float rows = static_cast<float>(count);
  block.rows[thread] = rows;
  SYNCLINE_UNROLL
  for (int c = 0; c < kWide; ++c) {
    const float mean = count == 0 ? 0 : sum[c] / rows;
    const float distance = squares[c] - sum[c] * mean;
    block.first[thread][c] = pivot[c] + mean;
    block.second[thread][c] = distance < 0 ? 0 : distance;  // a NaN stays
  }
}

// Adds the moments of the thread `stride` rows further down its column to those of `thread`.
template <int kWide>
SYNCLINE_HOST_DEVICE inline void join_moments(PairBlock<kWide>& block, int thread, int stride) {
  const int other = thread + stride * kLanes<kWide>;
  const float mine = block.rows[thread];
  const float theirs = block.rows[other];
  if (theirs == 0) return;
  const float share = theirs / (mine + theirs);
  SYNCLINE_UNROLL
  for (int c = 0; c < kWide; ++c) {
    const float delta = block.first[other][c] - block.first[thread][c];
    block.first[thread][c] += delta * share;
    block.second[thread][c] += block.second[other][c] + delta * delta * mine * share;
  }
  block.rows[thread] = mine + theirs;
}

template <int kWide>
SYNCLINE_HOST_DEVICE inline void join_sums(PairBlock<kWide>& block, int thread, int stride) {
  const int other = thread + stride * kLanes<kWide>;
  SYNCLINE_UNROLL
  for (int c = 0; c < kWide; ++c) {
    block.first[thread][c] += block.first[other][c];
    block.second[thread][c] += block.second[other][c];
  }
}

// Writes a pair for the row tile and each channel to the workspace: [row_tiles][channels][2].
template <int kWide>
SYNCLINE_HOST_DEVICE inline void write_pairs(const BatchNorm& norm, int channel,
                                             std::int64_t row_tile, int thread,
                                             const PairBlock<kWide>& block) {
  if (channel >= norm.channels) return;
  float* to = norm.workspace + (row_tile * norm.channels + channel) * 2;
  SYNCLINE_UNROLL
  for (int c = 0; c < kWide; ++c) {
    to[2 * c] = block.first[thread][c];
    to[2 * c + 1] = block.second[thread][c];
  }
}

// Final sums: kEndChannels channels per block, each by kEndParts threads that take the row tiles in
// turn; their parts are then added pairwise. In double, as there are few.
constexpr int kEndChannels = 8;
constexpr int kEndParts = kBlockThreads / kEndChannels;

struct EndPair {
  double first;
  double second;
};

// Returns rows times the distance of a tile's mean from the first tile's, and the sum of squared
// distances from there. The square of the total distance remains to be subtracted.
SYNCLINE_HOST_DEVICE inline EndPair end_of_moments(const BatchNorm& norm, const BatchNormGrid& grid,
                                                   int channel, int part) {
  EndPair end = {0, 0};
  const float* pairs = norm.workspace + 2 * static_cast<std::int64_t>(channel);
  const double pivot = pairs[0];
  const std::int64_t pitch = 2 * static_cast<std::int64_t>(norm.channels);
  for (std::int64_t tile = part; tile < grid.row_tiles; tile += kEndParts) {
    const std::int64_t begin = tile * grid.rows_per_tile;
    const std::int64_t left = norm.rows - begin;
    const auto rows = static_cast<double>(left < grid.rows_per_tile ? left : grid.rows_per_tile);
    const double distance = pairs[tile * pitch] - pivot;
    end.first += rows * distance;
    end.second += pairs[tile * pitch + 1] + rows * distance * distance;
  }
  return end;
}

SYNCLINE_HOST_DEVICE inline EndPair end_of_sums(const BatchNorm& norm, const BatchNormGrid& grid,
                                                int channel, int part) {
  EndPair end = {0, 0};
  const float* pairs = norm.workspace + 2 * static_cast<std::int64_t>(channel);
  const std::int64_t pitch = 2 * static_cast<std::int64_t>(norm.channels);
  for (std::int64_t tile = part; tile < grid.row_tiles; tile += kEndParts) {
    end.first += pairs[tile * pitch];
    end.second += pairs[tile * pitch + 1];
  }
  return end;
}

SYNCLINE_HOST_DEVICE inline void write_statistics(const BatchNorm& norm, int channel,
                                                  const EndPair& sum) {
  const auto rows = static_cast<double>(norm.rows);
  const double shift = sum.first / rows;
  const double mean = norm.workspace[2 * static_cast<std::int64_t>(channel)] + shift;
  double distance = sum.second - sum.first * shift;
  distance = distance < 0 ? 0 : distance;
  const double variance = distance / rows;
  norm.mean[channel] = static_cast<float>(mean);
  norm.inverse_deviation[channel] =
      static_cast<float>(1 / sqrt(variance + static_cast<double>(norm.epsilon)));
}

// The parameters of a thread's channels.
template <int kWide>
struct ChannelParameters {
  float mean[kWide];
  float scale[kWide];  // gamma * inverse deviation
  float beta[kWide];

  SYNCLINE_HOST_DEVICE ChannelParameters(const BatchNorm& norm, int channel) {
    SYNCLINE_UNROLL
    for (int c = 0; c < kWide; ++c) {
      mean[c] = norm.mean[channel + c];
      scale[c] = norm.gamma[channel + c] * norm.inverse_deviation[channel + c];
      beta[c] = norm.beta[channel + c];
    }
  }
};

// Returns the relu's input by the same operations in each pass: backward gets the same bits.
template <int kWide>
SYNCLINE_HOST_DEVICE inline float normalised(const ChannelParameters<kWide>& parameters, int c,
                                             float x, float residual) {
  return (x - parameters.mean[c]) * parameters.scale[c] + parameters.beta[c] + residual;
}

template <typename T, int kWide>
SYNCLINE_HOST_DEVICE inline void normalise_thread(const BatchNorm& norm, T* y,
                                                  const ColumnThread<kWide>& column) {
  if (column.row >= column.end) return;
  const ChannelParameters<kWide> parameters(norm, column.channel);
  const T* const arrays[] = {static_cast<const T*>(norm.x), static_cast<const T*>(norm.residual)};
  each_row<2>(norm, column, arrays, [&](std::int64_t at, float(&values)[2][kWide]) {
    SYNCLINE_UNROLL
    for (int c = 0; c < kWide; ++c) {
      const float z = normalised(parameters, c, values[0][c], values[1][c]);
      values[0][c] = norm.relu && z < 0 ? 0.0f : z;
    }
    store_channels(y + at, values[0]);
  });
}

// Returns the gradient through relu and addition: dy if z was positive, else 0.
SYNCLINE_HOST_DEVICE inline float through_relu(bool relu, float z, float dy) {
  return relu && z <= 0 ? 0.0f : dy;
}

// Computes the sums of dz, and of dz * (x - mean), over this thread's rows.
template <typename T, int kWide>
SYNCLINE_HOST_DEVICE inline void gradient_sums_of_thread(const BatchNorm& norm, const T* dy,
                                                         const ColumnThread<kWide>& column,
                                                         int thread, PairBlock<kWide>& block) {
  float first[kWide] = {};
  float second[kWide] = {};
  if (column.row < column.end) {
    const ChannelParameters<kWide> parameters(norm, column.channel);
    const T* const arrays[] = {static_cast<const T*>(norm.x), dy,
                               static_cast<const T*>(norm.residual)};
    each_row<2>(norm, column, arrays, [&](std::int64_t, const float(&values)[3][kWide]) {
      SYNCLINE_UNROLL
      for (int c = 0; c < kWide; ++c) {
        const float z = normalised(parameters, c, values[0][c], values[2][c]);
        const float dz = through_relu(norm.relu, z, values[1][c]);
        first[c] += dz;
        second[c] += dz * (values[0][c] - parameters.mean[c]);
      }
    });
  }
  SYNCLINE_UNROLL
  for (int c = 0; c < kWide; ++c) {
    block.first[thread][c] = first[c];
    block.second[thread][c] = second[c];
  }
}

SYNCLINE_HOST_DEVICE inline void write_gradients(const BatchNorm& norm,
                                                 const BatchNormGradients& gradients, int channel,
                                                 const EndPair& sum) {
  gradients.dbeta[channel] = static_cast<float>(sum.first);
  gradients.dgamma[channel] =
      static_cast<float>(sum.second * static_cast<double>(norm.inverse_deviation[channel]));
}

// Computes dx = scale * (dz - mean of dz - xhat * mean of dz xhat).
template <typename T, int kWide>
SYNCLINE_HOST_DEVICE inline void gradient_of_thread(const BatchNorm& norm,
                                                    const BatchNormGradients& gradients,
                                                    const ColumnThread<kWide>& column) {
  if (column.row >= column.end) return;
  const ChannelParameters<kWide> parameters(norm, column.channel);
  const float share = 1.0f / static_cast<float>(norm.rows);
  float mean_dz[kWide];
  float slope_dz[kWide];  // times the centred x
  SYNCLINE_UNROLL
  for (int c = 0; c < kWide; ++c) {
    mean_dz[c] = gradients.dbeta[column.channel + c] * share;
    slope_dz[c] =
        gradients.dgamma[column.channel + c] * share * norm.inverse_deviation[column.channel + c];
  }
  const T* const arrays[] = {static_cast<const T*>(norm.x), static_cast<const T*>(gradients.dy),
                             static_cast<const T*>(norm.residual)};
  T* dx = static_cast<T*>(gradients.dx);
  T* dresidual = static_cast<T*>(gradients.dresidual);
  each_row<1>(norm, column, arrays, [&](std::int64_t at, float(&values)[3][kWide]) {
    SYNCLINE_UNROLL
    for (int c = 0; c < kWide; ++c) {
      const float z = normalised(parameters, c, values[0][c], values[2][c]);
      const float dz = through_relu(norm.relu, z, values[1][c]);
      const float centred = values[0][c] - parameters.mean[c];
      values[0][c] = parameters.scale[c] * (dz - mean_dz[c] - centred * slope_dz[c]);
      values[1][c] = dz;
    }
    store_channels(dx + at, values[0]);
    if (dresidual != nullptr) store_channels(dresidual + at, values[1]);
  });
}

// Returns true if every row of every array begins at a multiple of 16 bytes, one access's size.
inline bool goes_wide(const BatchNorm& norm, std::initializer_list<const void*> others) {
  const int bytes = element_bytes(norm.type);
  if (norm.channels * static_cast<std::int64_t>(bytes) % 16 != 0) return false;
  const auto aligned = [](const void* address) {
    return reinterpret_cast<std::uintptr_t>(address) % 16 == 0;
  };
  bool all = aligned(norm.x) && aligned(norm.residual);
  for (const void* other : others) all = all && aligned(other);
  return all;
}

// Returns the thread's column. Adjacent blocks have adjacent channels of the same rows.
template <int kWide>
__device__ inline ColumnThread<kWide> my_column(const BatchNorm& norm, int channel_tiles,
                                                std::int64_t rows_per_tile, int thread) {
  return column_of<kWide>(norm, static_cast<int>(blockIdx.x % channel_tiles),
                          blockIdx.x / channel_tiles, rows_per_tile, thread);
}

// Joins the values of a column's threads pairwise; the threads of the first row write the result.
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

// Adds the parts of a channel pairwise, and writes their sum.
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
    batch_moments_end_kernel(const BatchNorm norm, const BatchNormGrid grid) {
  __shared__ EndPair parts[kBlockThreads];
  KernelBlock block;
  end_channels(
      block, norm, parts,
      [&](int channel, int part) { return end_of_moments(norm, grid, channel, part); },
      [&](int channel, const EndPair& sum) { write_statistics(norm, channel, sum); });
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

LaunchGrid blocks_of(std::int64_t row_tiles, int channel_tiles) {
  return {static_cast<unsigned>(row_tiles * channel_tiles)};
}

LaunchGrid end_blocks(const BatchNorm& norm) {
  return {static_cast<unsigned>((norm.channels + kEndChannels - 1) / kEndChannels)};
}

LaunchGrid written_blocks(const BatchNorm& norm, int channel_tiles) {
  return blocks_of((norm.rows + kWrittenRows - 1) / kWrittenRows, channel_tiles);
}

template <typename T, int kWide>
Status forward(const BatchNorm& norm, void* y, cudaStream_t stream) {
  const auto grid = batch_norm_grid(norm.rows, norm.channels, kWide);
  auto status = launch("batch_moments_kernel", batch_moments_kernel<T, kWide>,
                       blocks_of(grid.row_tiles, grid.channel_tiles), stream, norm, grid);
  if (!status.ok()) return status;
  status = launch("batch_moments_end_kernel", batch_moments_end_kernel, end_blocks(norm), stream,
                  norm, grid);
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

std::int64_t batch_norm_workspace(std::int64_t rows, std::int32_t channels) {
  return 2 * batch_norm_grid(rows, channels, 1).row_tiles * channels;
}

Status batch_norm_forward(const BatchNorm& norm, void* y, cudaStream_t stream) {
  const bool wide = goes_wide(norm, {y});
  return with_type(norm.type, [&](auto element) {
    using T = decltype(element);
    return wide ? forward<T, kWidest<T>>(norm, y, stream) : forward<T, 1>(norm, y, stream);
  });
}

Status batch_norm_backward(const BatchNorm& norm, const BatchNormGradients& gradients,
                           cudaStream_t stream) {
  const bool wide = goes_wide(norm, {gradients.dy, gradients.dx, gradients.dresidual});
  return with_type(norm.type, [&](auto element) {
    using T = decltype(element);
    return wide ? backward<T, kWidest<T>>(norm, gradients, stream)
                : backward<T, 1>(norm, gradients, stream);
  });
}

}  // namespace syncline::kernels
