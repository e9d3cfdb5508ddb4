// PowerSGD (Vogels, Karimireddy and Jaggi, NeurIPS 2019) like torch's powerSGD_hook (torch 1.13). A
// gradient is a matrix M, its first dimension by all others. It travels as two factors of few
// columns, P = sum of M Q made orthogonal and Q = sum of M^T P. The sum of all M is taken to be P
// Q^T; a rank's remainder of M waits for the next step.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/codec.h"
#include "core/strategy.h"

namespace syncline::compress {

// True if any of the workload's gradients has a shape of two dimensions. Otherwise shapes are
// unknown, and each gradient counts as the matrix nearest to a square.
bool shapes_known(const Workload& workload);

// Returns the factors of a gradient; it travels whole unless they are `min_rate` times smaller.
LowRank low_rank_of(const Tensor& tensor, const Compression& compression, bool shapes_known);

// Returns `elements` as a square that ends with zeros, always compressed (torch's
// batched_powerSGD_hook).
LowRank square_of(std::int64_t elements, std::int64_t rank);

// Elements and computation of a rank for gradients that travel together.
struct LowRankSizes {
  std::int64_t whole = 0;     // elements that are not compressed
  std::int64_t p = 0;         // elements of all first factors
  std::int64_t q = 0;         // and of the second ones
  std::int64_t matrices = 0;  // compressed ones
  std::int64_t matrix = 0;    // their elements
  double product = 0;         // FLOPs of one of the three products of each matrix
  // Cost of making the columns orthogonal: FLOPs, and elements read and written.
  double p_flops = 0, p_moved = 0;
  double q_flops = 0, q_moved = 0;

  std::int64_t sent_elements() const { return whole + p + q; }
};
LowRankSizes low_rank_sizes(std::span<const LowRank> gradients);

// Work of one rank before the sum of P (encode) and after it (decode: Q and P Q^T), including error
// feedback and uncompressed elements. One matrix product comes before, two after. bytes: of device
// memory.
struct LowRankWork {
  double flops = 0;
  double bytes = 0;
};
LowRankWork encode_work(const LowRankSizes& sizes, Bytes element_size);
LowRankWork decode_work(const LowRankSizes& sizes, Bytes element_size);

// Matrices lie row by row; a gradient with fewer elements than its matrix ends with zeros.

// Returns the first Q of a gradient, the same on every rank: normally distributed, columns not
// orthogonal.
std::vector<float> starting_factor(const LowRank& matrix, std::uint64_t seed);

// Orthogonalises the columns, of length 1, from the first on (Gram and Schmidt; torch has a QR
// decomposition from rank 3 on, which spans the same; its time is predicted). A column in the span
// of earlier ones becomes zeros; torch would scale its rounding error to length 1.
void orthogonalise(std::span<float> factor, std::int64_t rank);

std::vector<float> first_factor(std::span<const float> gradient, const LowRank& matrix,
                                std::span<const float> q);
std::vector<float> second_factor(std::span<const float> gradient, const LowRank& matrix,
                                 std::span<const float> p);
// Writes P Q^T into the gradient.
void multiply(std::span<const float> p, std::span<const float> q, const LowRank& matrix,
              std::span<float> gradient);

}  // namespace syncline::compress
