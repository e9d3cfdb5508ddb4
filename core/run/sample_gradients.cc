#include "core/run/sample_gradients.h"

#include <algorithm>
#include <cmath>

#include "core/base/index.h"
#include "core/base/random.h"

namespace syncline::run {
namespace {

// Returns the sum of twelve uniform numbers, near enough to normal for values that are summed.
float nearly_normal(Random& random) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += random.uniform();
  return static_cast<float>(sum);
}

// Returns one rank's gradient of a tensor; `value` gives each non-zero element. In a sparse one the
// announced rows are spread over the tensor. Each rank's begin elsewhere, so that some coincide
// with another's and some do not. A frozen parameter has zeros, which sums do not change.
template <typename Value>
std::vector<float> filled(const Tensor& tensor, int rank, const Value& value) {
  std::vector<float> gradient(index(tensor.elements), 0.0F);
  if (tensor.frozen) return gradient;
  if (!tensor.sparse) {
    for (auto& element : gradient) element = value();
    return gradient;
  }
  if (tensor.sparse_rows == 0) return gradient;
  const std::int64_t rows = tensor.shape.empty() ? 1 : tensor.shape.front();
  const std::int64_t width = tensor.elements / rows;
  for (std::int64_t i = 0; i < tensor.sparse_rows; ++i) {
    const std::int64_t row = (i * rows / tensor.sparse_rows + rank) % rows;
    for (std::int64_t e = 0; e < width; ++e) {
      gradient[index(row * width + e)] = value();
    }
  }
  return gradient;
}

}  // namespace

SampleValues exact_values(const plan::Plan& plan) {
  for (const auto& bucket : plan.buckets) {
    if (bucket.codec != nullptr && bucket.codec->low_rank) return SampleValues::kReal;
    const DType format = bucket.codec != nullptr ? bucket.codec->wire : bucket.dtype;
    if (size_of(format) < size_of(DType::kFp32)) return SampleValues::kIntegers;
  }
  return SampleValues::kWideIntegers;
}

RankGradients sample_gradients(const Workload& workload, int rank, int ranks, std::uint64_t seed,
                               SampleValues values) {
  Random random(seed * 1000003 + static_cast<std::uint64_t>(rank));
  constexpr int kExact = 256;
  const int most = std::clamp(kExact / ranks, 1, 8);
  constexpr float kWide = 1 << 20;
  const float wide = kWide / static_cast<float>(ranks);
  const auto value = [&] {
    if (values == SampleValues::kReal) return nearly_normal(random);
    // Within six deviations, so below half of the range of 24 bits when all ranks are summed.
    if (values == SampleValues::kWideIntegers) return std::round(nearly_normal(random) * wide);
    return static_cast<float>(
        static_cast<int>(random.bits() % static_cast<std::uint64_t>(2 * most + 1)) - most);
  };
  RankGradients gradients;
  for (const auto* list : {&workload.tensors, &workload.buffers}) {
    for (const Tensor& tensor : *list) gradients.push_back(filled(tensor, rank, value));
  }
  return gradients;
}

}  // namespace syncline::run
