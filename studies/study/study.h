// A study: every strategy of a scenario at every sweep point becomes a row; a calibration fits its
// parameters first.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/metrics.h"
#include "core/run/jobs.h"
#include "studies/rows/report.h"
#include "studies/study/study_calibration.h"

namespace syncline::measure {

// The sweep's points number, number + count, number + 2 count, ..., counted from 1.
struct Part {
  std::size_t number = 1;
  std::size_t count = 1;
};

struct StudyOptions {
  std::string executor = "model";
  ExecutorFactory make_executor;  // factory of that executor
  // The calibration's fit uses the model, whichever executor evaluates the rows.
  bool trace = false;  // keep plans and timelines of the first sweep point
  // Receives the numbers done and in all after each validated sweep point; `judged` is called after
  // the last one, before any evaluation.
  std::function<void(std::size_t, std::size_t)> judging = [](std::size_t, std::size_t) {};
  std::function<void()> judged = [] {};
  // Receives the numbers of rows done and in all, after each row.
  std::function<void(std::size_t, std::size_t)> progress = [](std::size_t, std::size_t) {};
  // Strategies that become rows, in addition to the baseline and those with published rows that the
  // scenario is calibrated on; empty: all.
  std::vector<std::string> only;
  Part part;  // part of the sweep that becomes rows; all of it is validated
  // Returns true to end the study with the rows so far; called between rows.
  std::function<bool()> interrupted = [] { return false; };
  // Receives the rows in order, each once it and all before it are evaluated. The report then has
  // no rows, so memory does not grow with the sweep. Null: the report stores them.
  std::function<void(Row)> take_row;
  // Evaluates the rows in other processes (run_jobs), with the same results; empty: here, one after
  // the other. Rows that it does not return are missing in the report, which is then incomplete.
  run::ParallelMap parallel_map;
};

// Runs a study. Throws InputError if a sweep value or a calibrated value makes the scenario wrong.
Report run_study(const input::Document& document, const StudyOptions& options);

// Results of evaluation as bytes for another process, exact to the last bit.

// Returns executor, metrics, speedup and buckets as bytes, without the row's part of the scenario
// (strategy, sweep values, published figure).
std::string row_bytes(Row row);
// Reads row_bytes. Throws MachineError if the bytes are cut short.
Row row_from_bytes(const std::string& bytes);

// Returns metrics as bytes; those of several rows may be concatenated.
std::string metrics_bytes(const Metrics& metrics);
// Reads metrics_bytes. Throws MachineError if the bytes are cut short.
std::vector<Metrics> metrics_from_bytes(const std::string& bytes);

}  // namespace syncline::measure
