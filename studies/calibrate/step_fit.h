// Fits a device's losses in data-parallel training to measured steps of the job: mutual slowdown of
// computation and exchanges, and extra costs of each step.
#pragma once

#include <string>
#include <vector>

#include "formats/input/document.h"
#include "studies/rows/row_evaluator.h"

namespace syncline::calibrate {

// A published step time, with the model's time before and after the fit.
struct StepRow {
  measure::RowKey key;
  std::size_t place = 0;  // index in the scenario's `published`
  Seconds measured = 0;
  Seconds before = 0;
  Seconds after = 0;
  bool fitted = false;  // false: left out of the fit, and predicted
};

// A key of cluster.device, in that key's own unit.
struct StepFigure {
  std::string key;
  double before = 0;
  double value = 0;
  // Ends of an 80 % interval.
  double low = 0;
  double high = 0;
  bool told = false;  // the fitted rows carry information beyond the prior
};

struct StepFit {
  std::string scenario;
  std::vector<StepRow> rows;
  std::vector<StepFigure> figures;
  std::vector<std::string> notes;  // quantities that these rows cannot determine
  // The scenario with these values, its fitted rows marked as calibrated.
  input::Document fitted;
};

// Fits the rows that `rows` names: strategies, whole names of rows (measure::name_of), or one
// number N for the first N. Empty: the rows marked as calibrated, else the first two.
// Deterministic. Throws InputError for a scenario without step times, with a calibration of its own
// or with several devices, and for unknown rows.
StepFit fit_steps(const input::Document& document, const std::vector<std::string>& rows = {});

}  // namespace syncline::calibrate
