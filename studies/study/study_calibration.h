// The calibration of a scenario: which of its rows fit which of its keys, part by part of the
// sweep, and how well rows are predicted that were left out of the fit. It fits on the model,
// whichever executor evaluates the rows.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "core/metrics.h"
#include "formats/input/document.h"
#include "formats/scenario/scenario.h"
#include "studies/rows/report.h"

namespace syncline::measure {

// Adds the fitted values to the report, and the refits with one group of rows left out each, those
// rows evaluated by `factory`. If `interrupted` returns true, the later refits are missing.
void calibrate_study(const input::Document& document, const Scenario& scenario,
                     const ExecutorFactory& factory, const std::function<bool()>& interrupted,
                     Report& report);

// A document with its calibration's fitted values in place, those of the first sweep point, and how
// well they are known; without a calibration unchanged.
struct Calibrated {
  input::Document document;
  FitErrors fit_errors;
};
Calibrated calibrate_document(const input::Document& document);

// Returns the fitted figures of the ports between nodes; nullopt if the fit is of something else.
// Requires a scenario with the fitted values in place.
std::optional<NetworkFit> network_fit_of(const Scenario& fitted);

// Fitting scenario keys to published figures: the least squares of relative errors over the rows
// that a scenario marks as calibrated.

// Relative errors (predicted / published - 1) of the fitted rows at these parameter values.
using Residuals = std::function<std::vector<double>(const std::vector<double>&)>;

// Returns the best values by Levenberg-Marquardt (Eigen's) with numerical derivatives, varying
// angles: value = min + (max - min) * sin^2. Bounds can be reached, not left. Deterministic.
std::vector<double> fit_parameters(const std::vector<Calibration::Parameter>& parameters,
                                   const Residuals& residuals);

}  // namespace syncline::measure
