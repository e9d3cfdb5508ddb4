// Products are summed in fp64, so that the rest of a column is orthogonal to the last bits of fp32.
// Each earlier column takes one pass over a column: a factor has few, and stays in the cache.
#include "kernels/kernels.h"

#include <cmath>

#include "kernels/launch.h"

namespace syncline::kernels {
namespace {

constexpr double kRounding = 1e-5;  // a column that shrinks to this share is only rounding

using Factors = TensorTable<Factor, 1024>;

struct Column {
  float* first;
  std::int64_t rows;
  std::int32_t rank;

  SYNCLINE_HOST_DEVICE float& at(std::int64_t row) const { return first[row * rank]; }
};

// Returns the sum of both columns' products, for all threads.
SYNCLINE_BLOCK_ALGORITHM double product(KernelBlock& block, const Column& a, const Column& b) {
  __shared__ double shared;
  KernelBlock::Each<double> sums;
  block.each([&](int thread) {
    double sum = 0;
    for (std::int64_t row = thread; row < a.rows; row += kBlockThreads) {
      sum += static_cast<double>(a.at(row)) * static_cast<double>(b.at(row));
    }
    sums[thread] = sum;
  });
  const double all = block.sum(sums);
  block.each([&](int thread) {
    if (thread == 0) shared = all;
  });
  const double copy = shared;
  block.each([](int) {});  // the next product may overwrite it
  return copy;
}

// Subtracts from each column its part along the earlier ones, and scales it to length 1. A column
// in their span becomes zeros.
__global__ void __launch_bounds__(kBlockThreads)
    orthogonalise_kernel(const __grid_constant__ Factors factors) {
  const auto [numbers, rows, rank] = factors.entries[blockIdx.x];
  KernelBlock block;
  for (std::int32_t own = 0; own < rank; ++own) {
    const Column column{numbers + own, rows, rank};
    const double given = product(block, column, column);
    for (std::int32_t before = 0; before < own; ++before) {
      const Column other{numbers + before, rows, rank};
      const auto along = static_cast<float>(product(block, other, column));
      block.each([&](int thread) {
        for (std::int64_t row = thread; row < rows; row += kBlockThreads) {
          column.at(row) -= along * other.at(row);
        }
      });
    }
    const double square = product(block, column, column);
    const bool spanned = square <= kRounding * kRounding * given;
    const auto scale = spanned ? 0.0f : static_cast<float>(1 / std::sqrt(square));
    block.each([&](int thread) {
      for (std::int64_t row = thread; row < rows; row += kBlockThreads) {
        column.at(row) = spanned ? 0.0f : column.at(row) * scale;
      }
    });
  }
}

}  // namespace

Status orthogonalise(const std::vector<Factor>& factors, cudaStream_t stream) {
  return in_tables<Factors>(factors, [&](const Factors& some, LaunchGrid grid, std::uint32_t) {
    return launch("orthogonalise_kernel", orthogonalise_kernel, grid, stream, some);
  });
}

}  // namespace syncline::kernels
