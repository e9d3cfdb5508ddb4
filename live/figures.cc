#include "live/figures.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/executor.h"

namespace syncline::live {
namespace {

// Returns a digest that differs for any accidental difference: multiply and rotate, eight bytes at
// a time. Zeros of either sign are the same value.
std::uint64_t digest(const run::RankGradients& gradients) {
  std::uint64_t sum = 0x9e3779b97f4a7c15ULL;
  const auto mix = [&](std::uint64_t word) {
    sum = (sum ^ word) * 0xff51afd7ed558ccdULL;
    sum = sum << 29U | sum >> 35U;
  };
  for (const auto& tensor : gradients) {
    mix(tensor.size());
    std::size_t i = 0;
    for (; i + 1 < tensor.size(); i += 2) {
      const float pair[2] = {tensor[i] + 0.0F, tensor[i + 1] + 0.0F};
      std::uint64_t word = 0;
      std::memcpy(&word, pair, sizeof word);
      mix(word);
    }
    if (i < tensor.size()) {
      const float last = tensor[i] + 0.0F;
      std::uint32_t word = 0;
      std::memcpy(&word, &last, sizeof word);
      mix(word);
    }
  }
  return sum;
}

run::Gradients expected(const Workload& workload, const plan::Plan& plan, std::uint64_t seed,
                        run::SampleValues values, int periods) {
  run::Gradients input;
  for (int rank = 0; rank < plan.ranks; ++rank) {
    input.push_back(run::sample_gradients(workload, rank, plan.ranks, seed, values));
  }
  return run::make_host_executor(workload)
      ->run(plan, input, plan.outer.any() ? periods : 1)
      .gradients;
}

// Returns the unit of rounding of the coarsest format in any sum of the plan's buckets.
double rounding_of(const plan::Plan& plan) {
  double worst = 0x1p-24;
  for (const auto& bucket : plan.buckets) {
    const DType format = bucket.codec != nullptr ? bucket.codec->wire : bucket.dtype;
    if (format == DType::kFp16) worst = std::max(worst, 0x1p-11);
    if (format == DType::kBf16) worst = std::max(worst, 0x1p-8);
    // Factors of a sum that was taken in another order are made orthogonal.
    if (bucket.codec != nullptr && bucket.codec->low_rank) worst = std::max(worst, 0x1p-17);
  }
  return worst;
}

bool all_say(ControlChannel& channel, bool yes) {
  const auto answers = channel.gather(yes ? "1" : "0", ControlChannel::kPatient);
  return std::all_of(answers.begin(), answers.end(), [](const auto& a) { return a == "1"; });
}

bool close(const run::RankGradients& found, const run::RankGradients& wanted, double tolerance) {
  for (std::size_t t = 0; t < found.size(); ++t) {
    for (std::size_t i = 0; i < found[t].size(); ++i) {
      if (!(std::abs(static_cast<double>(found[t][i]) - static_cast<double>(wanted[t][i])) <=
            tolerance)) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace

bool values_match(ControlChannel& channel, const Workload& workload, const plan::Plan& plan,
                  const run::RankGradients& result, std::uint64_t seed, run::SampleValues values,
                  int periods) {
  const auto rank = static_cast<std::size_t>(channel.rank());
  if (values == run::SampleValues::kReal) {
    const auto wanted = expected(workload, plan, seed, values, periods);
    // Values are within +-6. A sum of N rounds at most N times, each by its largest partial sum at
    // most; the layouts' own roundings are one more.
    constexpr double kLargest = 6;
    const double ranks = plan.ranks;
    const double tolerance = rounding_of(plan) * kLargest * ranks * (ranks + 1);
    return all_say(channel, close(result, wanted[rank], tolerance));
  }
  std::vector<std::uint64_t> digests;
  if (rank == 0) {
    for (const auto& gradients : expected(workload, plan, seed, values, periods)) {
      digests.push_back(digest(gradients));
    }
  }
  const std::string from_first = channel.from_first(bytes_of(digests), ControlChannel::kPatient);
  digests = read_figures<std::uint64_t>(from_first, channel, 0,
                                        static_cast<std::size_t>(channel.ranks()));
  return all_say(channel, digest(result) == digests[rank]);
}

}  // namespace syncline::live
