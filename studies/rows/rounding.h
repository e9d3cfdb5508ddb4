// Rounding error of formats and codecs on gradients: the relative distance, in the Euclidean norm,
// that one exchange leaves from the exact sum of normally distributed gradients.
#pragma once

#include <optional>

#include "core/strategy.h"
#include "formats/scenario/scenario.h"

namespace syncline::measure {

// Runs the host executor on one tensor of each rank with some 65,536 numbers of a seed. Returns
// nothing if sums are in fp32 throughout, if a codec leaves more behind than rounding, if
// parameters are averaged, for jobs that are cut, and above 128 ranks.
std::optional<double> rounding_error(const Scenario& scenario, const Strategy& strategy);

}  // namespace syncline::measure
