// A rank's remainder of M waits for its next step (error feedback), which begins with this Q (warm
// start). Uncompressed tensors travel whole, in their own collective. Source:
// torch/distributed/algorithms/ddp_comm_hooks/powerSGD_hook.py of torch 1.13.
#include "core/compress/power_sgd.h"

#include <algorithm>
#include <cmath>

#include "core/base/random.h"

namespace syncline::compress {
namespace {

bool applies(const Tensor& tensor, std::int64_t) { return !tensor.sparse; }

// Returns bytes in fp32: plan::encoded_bytes knows the bucket's own format.
Bytes encoded_bytes(std::int64_t, std::int64_t kept) { return size_of(DType::kFp32) * kept; }

// Largest rank for Gram and Schmidt. Each column is read for its norm, read and written to be
// scaled; every later one takes a product, its sum and a subtraction. Above it Householder's QR, 32
// columns at a time: each column reads, reads and writes those of its block, in the factorisation
// and in forming Q.
constexpr std::int64_t kGramSchmidt = 2;

double moved_to_orthogonalise(std::int64_t rows, std::int64_t rank) {
  constexpr double kBlock = 32;
  const auto r = static_cast<double>(rank);
  const double of_row =
      rank <= kGramSchmidt ? 3 * r + 7 * r * (r - 1) / 2 : 2 * 3 * r * std::min(r, kBlock) / 2;
  return static_cast<double>(rows) * of_row;
}

double flops_to_orthogonalise(std::int64_t rows, std::int64_t rank) {
  const auto r = static_cast<double>(rank);
  return static_cast<double>(rows) * (rank <= kGramSchmidt ? 2 * r * (r + 1) : 4 * r * r);
}

// A column that became shorter by this factor is only rounding error.
constexpr double kRounding = 1e-5;

}  // namespace

bool shapes_known(const Workload& workload) {
  return std::any_of(workload.tensors.begin(), workload.tensors.end(),
                     [](const Tensor& tensor) { return tensor.shape.size() > 1; });
}

LowRank low_rank_of(const Tensor& tensor, const Compression& compression, bool shapes_known) {
  LowRank matrix{tensor.elements, tensor.elements, 1, 0};
  if (!applies(tensor, 0) || tensor.elements == 0) return matrix;
  if (shapes_known && !tensor.shape.empty()) {
    matrix.rows = tensor.shape.front();
    matrix.columns = tensor.elements / matrix.rows;
  } else if (!shapes_known) {
    matrix.rows = std::max<std::int64_t>(
        1, static_cast<std::int64_t>(std::sqrt(static_cast<double>(tensor.elements))));
    matrix.columns = (tensor.elements + matrix.rows - 1) / matrix.rows;
  }
  const std::int64_t rank = std::min({matrix.rows, matrix.columns, compression.rank});
  const auto factors = static_cast<double>((matrix.rows + matrix.columns) * rank);
  if (factors * compression.min_rate < static_cast<double>(matrix.rows * matrix.columns)) {
    matrix.rank = rank;
  }
  return matrix;
}

LowRank square_of(std::int64_t elements, std::int64_t rank) {
  const auto side = static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(elements))));
  return {elements, side, side, std::min(rank, side)};
}

LowRankSizes low_rank_sizes(std::span<const LowRank> gradients) {
  LowRankSizes sizes;
  for (const LowRank& own : gradients) {
    if (own.rank == 0) {
      sizes.whole += own.elements;
      continue;
    }
    sizes.p += own.rows * own.rank;
    sizes.q += own.columns * own.rank;
    sizes.matrices += 1;
    sizes.matrix += own.elements;
    sizes.product += 2.0 * static_cast<double>(own.elements) * static_cast<double>(own.rank);
    sizes.p_flops += flops_to_orthogonalise(own.rows, own.rank);
    sizes.p_moved += moved_to_orthogonalise(own.rows, own.rank);
    sizes.q_flops += flops_to_orthogonalise(own.columns, own.rank);
    sizes.q_moved += moved_to_orthogonalise(own.columns, own.rank);
  }
  return sizes;
}

// Counts work before P's sum. The error is added (two reads, a write) and the sum copied (a read, a
// write). Uncompressed elements are gathered, Q is made orthogonal, and M Q reads each matrix.
LowRankWork encode_work(const LowRankSizes& sizes, Bytes element_size) {
  const auto all = static_cast<double>(sizes.whole + sizes.matrix);
  const double moved = 5 * all + 2 * static_cast<double>(sizes.whole) + sizes.q_moved +
                       static_cast<double>(sizes.matrix + sizes.p + sizes.q);
  return {sizes.product + sizes.q_flops, moved * static_cast<double>(element_size)};
}

// Counts work after it. P is made orthogonal, M^T P reads each matrix and P Q^T writes it.
// Uncompressed elements go back, and the new error takes two reads and a write.
LowRankWork decode_work(const LowRankSizes& sizes, Bytes element_size) {
  const auto all = static_cast<double>(sizes.whole + sizes.matrix);
  const double moved = 3 * all + 2 * static_cast<double>(sizes.whole) + sizes.p_moved +
                       2 * static_cast<double>(sizes.matrix + sizes.p + sizes.q);
  return {2 * sizes.product + sizes.p_flops, moved * static_cast<double>(element_size)};
}

std::vector<float> starting_factor(const LowRank& matrix, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> factor(static_cast<std::size_t>(matrix.columns * matrix.rank));
  for (float& value : factor) value = static_cast<float>(random.normal());
  return factor;
}

void orthogonalise(std::span<float> factor, std::int64_t rank) {
  const auto width = static_cast<std::size_t>(rank);
  const auto square_of = [&](std::size_t column) {
    double square = 0;
    for (std::size_t i = column; i < factor.size(); i += width) {
      square += static_cast<double>(factor[i]) * static_cast<double>(factor[i]);
    }
    return square;
  };
  std::vector<double> given;
  for (std::size_t column = 0; column < width; ++column) given.push_back(square_of(column));
  for (std::size_t own = 0; own < width; ++own) {
    const double square = square_of(own);
    if (square <= kRounding * kRounding * given[own]) {
      for (std::size_t i = own; i < factor.size(); i += width) factor[i] = 0;
      continue;
    }
    const auto scale = static_cast<float>(1 / std::sqrt(square));
    for (std::size_t i = own; i < factor.size(); i += width) factor[i] *= scale;
    for (std::size_t other = own + 1; other < width; ++other) {
      double along = 0;
      for (std::size_t row = 0; row < factor.size(); row += width) {
        along += static_cast<double>(factor[row + own]) * static_cast<double>(factor[row + other]);
      }
      for (std::size_t row = 0; row < factor.size(); row += width) {
        factor[row + other] -= static_cast<float>(along) * factor[row + own];
      }
    }
  }
}

std::vector<float> first_factor(std::span<const float> gradient, const LowRank& matrix,
                                std::span<const float> q) {
  const auto columns = static_cast<std::size_t>(matrix.columns);
  const auto rank = static_cast<std::size_t>(matrix.rank);
  std::vector<float> p;
  p.reserve(static_cast<std::size_t>(matrix.rows) * rank);
  for (std::size_t begin = 0; begin < columns * static_cast<std::size_t>(matrix.rows);
       begin += columns) {
    const std::size_t end = std::min(begin + columns, gradient.size());
    for (std::size_t k = 0; k < rank; ++k) {
      double sum = 0;
      for (std::size_t i = begin; i < end; ++i) {
        sum += static_cast<double>(gradient[i]) * static_cast<double>(q[(i - begin) * rank + k]);
      }
      p.push_back(static_cast<float>(sum));
    }
  }
  return p;
}

std::vector<float> second_factor(std::span<const float> gradient, const LowRank& matrix,
                                 std::span<const float> p) {
  const auto columns = static_cast<std::size_t>(matrix.columns);
  const auto rank = static_cast<std::size_t>(matrix.rank);
  std::vector<double> sums(columns * rank, 0);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    for (std::size_t k = 0; k < rank; ++k) {
      sums[i % columns * rank + k] +=
          static_cast<double>(gradient[i]) * static_cast<double>(p[i / columns * rank + k]);
    }
  }
  return {sums.begin(), sums.end()};
}

void multiply(std::span<const float> p, std::span<const float> q, const LowRank& matrix,
              std::span<float> gradient) {
  const auto columns = static_cast<std::size_t>(matrix.columns);
  const auto rank = static_cast<std::size_t>(matrix.rank);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    double sum = 0;
    for (std::size_t k = 0; k < rank; ++k) {
      sum += static_cast<double>(p[i / columns * rank + k]) *
             static_cast<double>(q[i % columns * rank + k]);
    }
    gradient[i] = static_cast<float>(sum);
  }
}

Codec power_sgd_codec() {
  return {.name = "powersgd",
          .summary = "matrices as two factors of low rank, each summed by all-reduce",
          .sparse = false,
          .applies = applies,
          .encoded_bytes = encoded_bytes,
          .encode_traffic = nullptr,
          .decode_traffic = nullptr,
          .encode = nullptr,
          .add = nullptr,
          .low_rank = true};
}

Codec batched_power_sgd_codec() {
  Codec codec = power_sgd_codec();
  codec.name = "batched_powersgd";
  codec.summary = "each bucket as one square matrix, in two factors of low rank";
  codec.whole_bucket = true;
  return codec;
}

}  // namespace syncline::compress
