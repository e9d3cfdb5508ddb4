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

// Adds what was fitted to the report, and the refits with one group of rows left out each, those
// rows evaluated by `factory`. Where `interrupted` says so the later refits are missing.
void calibrate_study(const input::Document& document, const Scenario& scenario,
                     const ExecutorFactory& factory, const std::function<bool()>& interrupted,
                     Report& report);

// A document with its calibration's fitted values in place, those of the first sweep point, and how
// well they are known; without a calibration unchanged.
struct Calibrated {
  input::Document document;
  FitErrors fit_errors;
};
Calibrated calibrated(const input::Document& document);

// Returns what a calibration found of the ports between nodes; nothing where it fits something
// else. Of a scenario with the fitted values in place.
std::optional<NetworkFit> network_fit_of(const Scenario& fitted);

// Fitting scenario keys to published figures: the least squares of relative errors over the rows
// that a scenario marks as calibrated.

// Relative errors (predicted / published - 1) of the fitted rows at these parameter values.
using Residuals = std::function<std::vector<double>(const std::vector<double>&)>;

// Levenberg-Marquardt (Eigen's) with numerical derivatives, inside the parameters' bounds: each is
// varied on a scale where its bounds lie at infinity. Deterministic. Returns the best values found.
std::vector<double> fit_parameters(const std::vector<Calibration::Parameter>& parameters,
                                   const Residuals& residuals);

}  // namespace syncline::measure
