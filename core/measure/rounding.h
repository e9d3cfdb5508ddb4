// What formats and codecs round away of gradients on their way: the relative distance, in the
// Euclidean norm, of what one exchange leaves from the exact sum of normally distributed gradients.
#pragma once

#include <optional>

#include "core/scenario/scenario.h"

namespace syncline::measure {

// By the host executor, on one tensor of each rank with some 65,536 numbers of a seed. Nothing
// where sums are in fp32 throughout, where a codec leaves more behind than rounding, where
// parameters are averaged, for jobs that are cut, and above 128 ranks.
std::optional<double> rounding_error(const Scenario& scenario, const Strategy& strategy);

}  // namespace syncline::measure
