// The answer of `syncline import`: figures read from a job's files, and the scenario made of them,
// evaluated and compared with the measured steps.
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
  std::string out;            // path of the written file; empty: none
};

// Returns the answer. Table: the steps, the parts of the typical one, its buckets and the rule that
// explains them, waiting of other ranks, assumptions, the scenario's rows. CSV: one line per
// collective of the typical step.
Answer answer_of(const ImportedJob& job);

}  // namespace syncline::reports
