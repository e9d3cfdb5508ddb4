// One plan predicted and measured: times per kind of operation, and advice if the model's links
// need another measurement.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/executor.h"
#include "core/plan.h"
#include "studies/rows/uncertainty.h"

namespace syncline::measure {

// A payload or encoding that was timed to calibrate links.
struct LinkSample {
  std::string what;  // "all_reduce", "all_reduce inside nodes", "dgc encode"
  std::int64_t bytes = 0;
  Seconds measured = 0;  // median over the repeats
  Seconds fitted = 0;
};

// All operations of one kind in a step.
struct KindTime {
  std::string kind;    // "forward", "backward", "all_reduce", "encode", ...
  int operations = 0;  // per step
  Seconds predicted = 0;
  Seconds measured = 0;  // mean over ranks and steps
};

struct ValidatedRow {
  std::string strategy;
  Seconds predicted = 0;       // time of a step
  Interval interval;           // 80 % interval of `predicted`; both ends 0: not computed
  std::vector<Seconds> steps;  // measured, warm-up left out
  Seconds median = 0;
  Seconds p95 = 0;
  std::optional<bool> values_match;  // nullopt: not checked
  std::vector<KindTime> kinds;
  std::vector<KindTime> collectives;        // each one, if undisturbed by others and encoding
  std::optional<double> published_speedup;  // over the baseline, published
  // Per step, on the rank that sent most; nullopt if the backend does not count them.
  std::optional<double> bytes_sent;

  double error() const { return predicted / median - 1; }
  double error_percent() const { return error() * 100; }
  bool is_in_interval() const { return interval.low <= median && median <= interval.high; }
};

struct Validation {
  std::string file;  // path of the file read
  std::string scenario;
  std::string workload;
  std::string cluster;
  std::string backend;
  std::string baseline;
  std::string executor;  // name of the one that predicted
  std::string version;
  std::string date;        // date of the measurement, UTC: 2026-11-20
  std::string hardware;    // hardware of the run, in words
  bool operators = false;  // the workload's operators ran as kernels; else timers took their time
  int ranks = 1;
  int warmup = 0;
  int repeats = 0;
  Seconds clock_error = 0;  // largest between ranks
  // Calibration of the links: live, by samples; empty if the scenario's figures are used.
  std::vector<LinkSample> samples;
  std::string links;  // each tier in words
  std::vector<ValidatedRow> rows;
  bool complete = true;
};

// Returns the measured speedup over the baseline; nullopt without the baseline's row.
std::optional<double> measured_speedup(const Validation& validation, const ValidatedRow& row);

// Compares both timelines of one plan. The first `warmup` periods of the measured one are dropped;
// the last period of the predicted one counts.
ValidatedRow compare(const std::string& strategy, const plan::Plan& plan, Seconds predicted_step,
                     const run::Timeline& predicted, const run::Timeline& measured, int warmup);

// Returns sentences on the links: one if small collectives (latency) or large ones (bandwidth) are
// systematically off.
// If collectives are too few and the links were not measured, returns one that says so if the steps
// are far off.
std::vector<std::string> link_advice(const Validation& validation);

}  // namespace syncline::measure
