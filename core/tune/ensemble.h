// The models of a search: one cost model under many latencies and bandwidths, weighted by how far
// the model may be off.
#pragma once

#include <functional>

#include "core/tune/candidate.h"
#include "core/units.h"

namespace syncline::tune {

// How far off the model may be: the true latency and bandwidth are log-normal around the model's,
// and `factor` is one standard deviation. The models stand on a square grid over the logarithms, to
// two standard deviations each way, `steps` of them to a deviation.
struct ModelUncertainty {
  double factor = 2;  // above 1
  int steps = 2;      // at least 1
};

// One model: what it multiplies the model's latency and its time a byte with.
struct MemberFactors {
  double latency = 1;
  double transfer = 1;
  double log_weight = 0;
};
std::vector<MemberFactors> member_factors(const ModelUncertainty& uncertainty);

// cost(candidate, model), both by index: the model's step time.
Ensemble evaluate_ensemble(const std::vector<MemberFactors>& factors, std::size_t candidates,
                           const std::function<Seconds(std::size_t, std::size_t)>& cost);

}  // namespace syncline::tune
