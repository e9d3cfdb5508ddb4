// The fusion rules of today, for comparison with the optimum. What frameworks do by a limit is a
// Fusion (core/plan/fusion splits by it); what schedulers derive from measured times is a function.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "core/strategy.h"
#include "studies/tune/thresholds.h"
#include "tests/support/one_stream.h"

namespace syncline::test {

struct NamedRule {
  std::string_view name;
  std::string_view about;
  Fusion fusion;
};

// Each gradient alone; one bucket; DDP (1 MiB, then 25 MiB, closes after reaching them); Horovod
// (64 MiB, closes before exceeding it); Paddle (16 MiB or more than 50 tensors; and 32 MiB), one
// gradient after the other.
const std::vector<NamedRule>& common_rules();

// MG-WFBP's buckets (core/plan/fusion.h): the last gradient of each. Bytes are whole numbers.
std::vector<std::size_t> mg_wfbp(const FusionProblem& problem, const AffineCost& cost);

// The threshold whose value of `finish` is smallest, the smallest of equals (values that differ by
// rounding are equal). Requires at least one.
Bytes best_threshold(const std::vector<Bytes>& thresholds,
                     const std::function<Seconds(Bytes)>& finish);

// The last tensor of each group, where groups are runs 0..k, k+1.. of consecutive indices; empty
// where they are not.
std::vector<std::size_t> run_ends(const std::vector<std::vector<int>>& groups);

}  // namespace syncline::test
