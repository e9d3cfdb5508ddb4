#include "core/run/stragglers.h"

#include <algorithm>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>
#include <cstdlib>
#include <variant>

#include "core/base/index.h"
#include "core/base/random.h"
#include "core/base/statistics.h"

namespace syncline::run {
namespace {

// Returns the factor of the slowest of `ranks`, as the mean over `steps` micro-batches.
Moments slowest(const Jitter& jitter, int ranks, int steps) {
  if (jitter.kind == Jitter::Kind::kNormal) {
    const Moments z = largest_of_normals(ranks);
    const double spread = jitter.relative / std::sqrt(static_cast<double>(steps));
    return {1.0 + spread * z.mean, spread * z.deviation};
  }
  const double mean = steps;
  if (ranks == 1) return {1.0 + jitter.relative, jitter.relative / std::sqrt(mean)};
  // The sum of `steps` exponentials of mean 1 has Erlang's distribution.
  const auto above = [&](double x) { return boost::math::gamma_q(mean, x); };
  const double high = mean + 12 * std::sqrt(mean) + 12 + 3 * std::log(static_cast<double>(ranks));
  const Moments sum = largest_of(above, ranks, 0.0, high);
  return {1.0 + jitter.relative * sum.mean / mean, jitter.relative * sum.deviation / mean};
}

std::uint64_t hashed(std::uint64_t key) { return Random(key).bits(); }

}  // namespace

double expected_slowest(const Jitter& jitter, int ranks, int steps) {
  return jitter.kind == Jitter::Kind::kNone ? 1.0 : slowest(jitter, ranks, steps).mean;
}

double expected_slowest(const Jitter& jitter, const Waits& waits) {
  const auto& [ranks, groups, passes, steps] = waits;
  if (jitter.kind == Jitter::Kind::kNone) return 1.0;
  if (ranks == 1) return expected_slowest(jitter, groups, steps * passes);
  if (groups == 1) return expected_slowest(jitter, ranks, passes);
  const Moments step = slowest(jitter, ranks, passes);
  const double spread = step.deviation / std::sqrt(static_cast<double>(steps));
  return step.mean + spread * largest_of_normals(groups).mean;
}

Waits waits_of(const plan::Plan& plan) {
  const int steps = plan.wait_steps > 0 ? plan.wait_steps : plan.steps;
  if (steps == 1) return {plan.ranks, 1, plan.passes, 1};
  // A group is a block of ranks; some collective of its step spans it.
  int ranks = 1;
  for (const plan::Op& op : plan.ops) {
    if (op.step > 0) break;
    const auto* collective = std::get_if<collective::Collective>(&op.work);
    if (collective == nullptr) continue;
    const int bucket = collective->bucket;
    if (bucket >= 0 && plan.buckets[index(bucket)].averaged) continue;
    ranks = std::max(ranks, collective->groups.size * std::abs(collective->groups.member_step));
  }
  return {ranks, plan.ranks / ranks, plan.passes, steps};
}

double jitter_factor(const Jitter& jitter, std::uint64_t seed, int rank, std::int64_t step) {
  if (jitter.kind == Jitter::Kind::kNone) return 1.0;
  const std::uint64_t key = hashed(hashed(hashed(seed) ^ static_cast<std::uint64_t>(rank)) ^
                                   static_cast<std::uint64_t>(step));
  const double first = Random(key).uniform();
  if (jitter.kind == Jitter::Kind::kExponential) return 1.0 - jitter.relative * std::log(first);
  const double second = Random(key ^ 0xd1b54a32d192ed03ULL).uniform();
  return std::max(0.0, 1.0 + jitter.relative * Random::normal_of(first, second));
}

}  // namespace syncline::run
