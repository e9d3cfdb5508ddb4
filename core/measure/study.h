// A study: a scenario carried out. Every strategy at every sweep point becomes a row; a calibration
// fits its parameters first.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/input/document.h"
#include "core/measure/report.h"
#include "core/run/executor.h"
#include "core/run/jobs.h"

namespace syncline {

using ExecutorFactory = std::function<std::unique_ptr<Executor>(const ExecutorSettings&)>;

struct StudyOptions {
  std::string executor = "model";
  ExecutorFactory make_executor;  // of that name
  // The calibration's fit runs on the model, whichever executor prices the rows.
  bool trace = false;  // keep plans and timelines of the first sweep point
  // Called once every sweep point has been judged and nothing has been priced yet.
  std::function<void()> judged = [] {};
  // Called after each row with the number of rows done and wanted.
  std::function<void(std::size_t, std::size_t)> progress = [](std::size_t, std::size_t) {};
  // Asked between rows; true ends the study with the rows so far.
  std::function<bool()> interrupted = [] { return false; };
  // Does the rows' work elsewhere, in other processes (run_jobs) or on other machines
  // (run_sharded); empty: here, one after the other. The rows are the same. What it does not give
  // is missing in the report, which is incomplete then.
  Spread spread;
};

// Throws InputError where a sweep value or a calibrated value makes the scenario wrong.
Report run_study(const Document& document, const StudyOptions& options);

// The document with its calibration's fitted values in place; unchanged without a calibration.
Document calibrated(const Document& document);

// One row: `strategy` priced at one sweep point that has been put in place already.
struct Priced {
  Metrics metrics;
  Plan plan;  // of the first phase, and its timeline
  Timeline timeline;
};
Priced price_strategy(const Scenario& scenario, const Strategy& strategy, Executor& executor,
                      PriceBook& book);

}  // namespace syncline
