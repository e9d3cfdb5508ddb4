// The answer of `syncline import`: what a job left behind, in figures, and the scenario that was
// made of it, evaluated beside what was measured.
#pragma once

#include <string>

#include "imports/scenario_of.h"
#include "reports/answer.h"
#include "studies/rows/report.h"

namespace syncline::reports {

struct ImportedJob {
  job::Observed observed;
  job::Imported imported;
  measure::Report evaluated;  // the scenario's rows
  std::string out;            // the file that was written; empty: none
};

// Table: the steps, where the typical one goes, its buckets, which rule explains them, how long the
// other ranks waited, what was assumed, the scenario's rows. CSV: one line a collective of the
// typical step.
Answer answer_of(const ImportedJob& job);

}  // namespace syncline::reports
