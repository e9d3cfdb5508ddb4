// Fitting scenario keys to published figures: the least squares of relative errors over the rows
// that a scenario marks as calibrated.
#pragma once

#include <functional>
#include <vector>

#include "core/scenario/scenario.h"

namespace syncline::measure {

// Relative errors (predicted / published - 1) of the fitted rows at these parameter values.
using Residuals = std::function<std::vector<double>(const std::vector<double>&)>;

// Levenberg-Marquardt (Eigen's) with numerical derivatives, inside the parameters' bounds: each is
// varied on a scale where its bounds lie at infinity. Deterministic. Returns the best values found.
std::vector<double> fit_parameters(const std::vector<Calibration::Parameter>& parameters,
                                   const Residuals& residuals);

}  // namespace syncline::measure
