// Checks orthogonalised columns: length 1, right angles, each in the span of the given ones up to
// it, zeros if it depends on those before it.
#include "kernels/kernels.h"

#include <algorithm>
#include <vector>

#include "kernels/check/check.h"

namespace syncline::kernels {
namespace {

double product(const std::vector<float>& a, const std::vector<float>& b, std::size_t rank,
               std::size_t column_of_a, std::size_t column_of_b) {
  double sum = 0;
  for (std::size_t row = 0; row < a.size(); row += rank) {
    sum += static_cast<double>(a[row + column_of_a]) * static_cast<double>(b[row + column_of_b]);
  }
  return sum;
}

// Returns the largest error of lengths, angles and spans, as a multiple of fp32's allowed error.
Worst error_of(const std::vector<float>& given, const std::vector<float>& made, std::size_t rank,
               std::size_t spanned) {
  Worst worst;
  const double allowed = 4e-6 * std::sqrt(static_cast<double>(rank));
  for (std::size_t column = 0; column < rank; ++column) {
    double within = 0;
    for (std::size_t other = 0; other < rank; ++other) {
      const double length = other == column && column != spanned ? 1 : 0;
      worst.take(product(made, made, rank, column, other), length, allowed);
      const double part = product(given, made, rank, column, other);
      if (other <= column) within += part * part;
    }
    const double whole = product(given, given, rank, column, column);
    worst.take(within / whole, 1, allowed);
  }
  return worst;
}

}  // namespace

void check_orthogonalise(Checks& checks) {
  std::vector<std::size_t> sizes{1, 2, 7, 64, 255, 256, 257, checks.size(25'088, 1'000)};
  for (const std::size_t rows : sizes) {
    for (const std::size_t rank : {1U, 2U, 4U, 33U}) {
      for (const bool spans : {false, true}) {
        const std::size_t spanned = spans ? rank - 1 : rank;
        if (rank > rows || (spans && rank < 2)) continue;
        auto values = random_elements<float>(rows * rank, static_cast<unsigned>(rows + rank));
        for (std::size_t row = 0; spans && row < values.size(); row += rank) {
          values[row + spanned] = 3 * values[row];
        }
        DeviceArray<float> factor(values, 1);
        require(orthogonalise(
            {{factor.data(), static_cast<std::int64_t>(rows), static_cast<std::int32_t>(rank)}},
            nullptr));
        wait_for_gpu();
        const Worst worst = error_of(values, factor.get(), rank, spanned);
        checks.line("orthogonalise " + std::to_string(rows) + " x " + std::to_string(rank) +
                        (spans ? ", one spanned" : ""),
                    worst.passes() && factor.intact(), worst.text());
      }
    }
  }
}

}  // namespace syncline::kernels
