// Rounding error of formats and codecs on gradients: relative distance, in the Euclidean norm, of
// one exchange from the exact sum of normally distributed gradients.
#pragma once

#include <optional>

#include "core/strategy.h"
#include "formats/scenario/scenario.h"

namespace syncline::measure {

// Runs the host executor on one tensor per rank of some 65,536 numbers from a seed. Returns nullopt
// if all sums are in fp32, a codec loses more than rounding, parameters are averaged, the model is
// partitioned among ranks, or there are more than 128 ranks.
std::optional<double> rounding_error(const Scenario& scenario, const Strategy& strategy);

}  // namespace syncline::measure
