// One plan predicted and measured: its times side by side, operation kind by operation kind, and
// whether the model's links should be measured again.
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
  Seconds predicted = 0;       // a step
  Interval interval;           // 80 % of it; both ends 0 where it was not worked out
  std::vector<Seconds> steps;  // measured, warm-up left out
  Seconds median = 0;
  Seconds p95 = 0;
  std::optional<bool> values_match;  // nothing: not checked
  std::vector<KindTime> kinds;
  std::vector<KindTime> collectives;        // each, of strategies whose collectives are alone
  std::optional<double> published_speedup;  // over the baseline, somebody's
  // Per step, by the rank that sent most; nothing where the backend does not count them.
  std::optional<double> bytes_sent;

  double error() const { return predicted / median - 1; }
  double error_percent() const { return error() * 100; }
  bool held() const { return interval.low <= median && median <= interval.high; }
};

struct Validation {
  std::string file;  // that it was read from
  std::string scenario;
  std::string workload;
  std::string cluster;
  std::string backend;
  std::string baseline;
  std::string executor;  // that predicted
  std::string version;
  std::string date;        // of the measurement, UTC: 2026-11-20
  std::string hardware;    // what ran it, in words
  bool operators = false;  // the workload's ran as kernels; else timers passed their times
  int ranks = 1;
  int warmup = 0;
  int repeats = 0;
  Seconds clock_error = 0;  // between ranks, at most
  // How the links were calibrated: live, by samples; empty where the scenario's figures stand.
  std::vector<LinkSample> samples;
  std::string links;  // each tier in words
  std::vector<ValidatedRow> rows;
  bool complete = true;
};

// How much faster than the baseline a row was measured; nothing without the baseline's row.
std::optional<double> measured_speedup(const Validation& validation, const ValidatedRow& row);

// Puts both timelines of one plan side by side. The first `warmup` periods of the measured one are
// dropped; of the predicted one the last period counts.
ValidatedRow compare(const std::string& strategy, const plan::Plan& plan, Seconds predicted_step,
                     const run::Timeline& predicted, const run::Timeline& measured, int warmup);

// What the rows say about the links: sentences, one where small collectives (latency) or large ones
// (bandwidth) are systematically off, none where they are not.
// Where there are too few collectives and the links were not measured, one that says so if the
// steps are far off.
std::vector<std::string> link_advice(const Validation& validation);

}  // namespace syncline::measure
