// A study: a scenario carried out. Every strategy at every sweep point becomes a row; a calibration
// fits its parameters first.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/metrics.h"
#include "core/run/jobs.h"
#include "studies/rows/report.h"
#include "studies/study/study_calibration.h"

namespace syncline::measure {

// Of the sweep's points number, number + count, number + 2 count, ..., counted from 1.
struct Part {
  std::size_t number = 1;
  std::size_t count = 1;
};

struct StudyOptions {
  std::string executor = "model";
  ExecutorFactory make_executor;  // of that name
  // The calibration's fit runs on the model, whichever executor evaluates the rows.
  bool trace = false;  // keep plans and timelines of the first sweep point
  // Called after each sweep point that has been validated, with the number done and wanted, and
  // once all of them have been and nothing has been evaluated yet.
  std::function<void(std::size_t, std::size_t)> judging = [](std::size_t, std::size_t) {};
  std::function<void()> judged = [] {};
  // Called after each row with the number of rows done and wanted.
  std::function<void(std::size_t, std::size_t)> progress = [](std::size_t, std::size_t) {};
  // Strategies that become rows, beside the baseline and those with published rows that the
  // scenario is calibrated on; empty: all.
  std::vector<std::string> only;
  Part part;  // of the sweep becomes rows; all of it is validated
  // Asked between rows; true ends the study with the rows so far.
  std::function<bool()> interrupted = [] { return false; };
  // Takes the rows, in order, each as soon as it and all before it are evaluated; the report has
  // none then, and a sweep of any size needs no more memory than a small one. None: the report
  // keeps them.
  std::function<void(Row)> take_row;
  // Costs the rows in other processes (run_jobs); empty: here, one after the other. The rows are
  // the same. Those that it does not return are
  // missing in the report, which is incomplete then.
  run::ParallelMap parallel_map;
};

// Throws InputError where a sweep value or a calibrated value makes the scenario wrong.
Report run_study(const input::Document& document, const StudyOptions& options);

// What evaluation found out about a row, as bytes that another process can take up to the last bit.

// Executor, metrics, speedup and buckets. What the scenario says of the row (its strategy, sweep
// values, published figure) is not among them.
std::string row_bytes(Row row);
// Throws MachineError where the bytes are cut short.
Row row_from_bytes(const std::string& bytes);

// Metrics alone; those of several rows may stand one behind the other.
std::string metrics_bytes(const Metrics& metrics);
// Throws MachineError where the bytes are cut short.
std::vector<Metrics> metrics_from_bytes(const std::string& bytes);

}  // namespace syncline::measure
