// What a device loses to data-parallel training, fitted to measured steps of the job: how much
// computation and exchanges slow each other down, and what each step costs besides.
#pragma once

#include <string>
#include <vector>

#include "formats/input/document.h"
#include "studies/rows/row_evaluator.h"

namespace syncline::calibrate {

// A published step time, with the model's own before and after the fit.
struct StepRow {
  measure::RowKey key;
  std::size_t place = 0;  // in the scenario's `published`
  Seconds measured = 0;
  Seconds before = 0;
  Seconds after = 0;
  bool fitted = false;  // else it was left out, and is predicted
};

// A key of cluster.device, in that key's own unit.
struct StepFigure {
  std::string key;
  double before = 0;
  double value = 0;
  // 80 % of what is left to be expected.
  double low = 0;
  double high = 0;
  bool told = false;  // the fitted rows say more of it than was known without them
};

struct StepFit {
  std::string scenario;
  std::vector<StepRow> rows;
  std::vector<StepFigure> figures;
  std::vector<std::string> notes;  // what these rows cannot tell
  // The scenario with these values, its fitted rows marked as calibrated.
  input::Document fitted;
};

// Fits the rows that `rows` names: strategies, or rows by their whole names (measure::name_of), or
// one number N for the first N. Empty: the rows that are marked as calibrated, or else the first
// two. Deterministic. Throws InputError for a scenario without step times, with a calibration of
// its own or with several devices, and for rows that are not there.
StepFit fit_steps(const input::Document& document, const std::vector<std::string>& rows = {});

}  // namespace syncline::calibrate
