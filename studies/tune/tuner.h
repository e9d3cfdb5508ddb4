// The tuner: the best strategy of a search, its distance from the optimum, the others' cost.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/executor.h"
#include "core/run/jobs.h"
#include "studies/rows/prediction.h"
#include "studies/study/study.h"
#include "studies/tune/search_space.h"

namespace syncline::tune {

struct TuneOptions {
  measure::ExecutorFactory make_executor = run::make_model_executor;
  std::string executor = "model";
  measure::ExecutorFactory confirm;  // costs the best few once more; none: nothing is confirmed
  // Limit of the collectives of all confirmed strategies together, because a simulation takes long
  // for each. If several may be under way at once, a collective counts once per rank. 0: no limit.
  double confirm_work = 0;
  std::size_t top = 5;     // how many of the best to report, at least 1
  std::size_t budget = 0;  // candidates evaluated at most; 0: no limit
  // Limit of candidates evaluated * gradients, as a candidate takes longer with more gradients; 0:
  // no limit.
  std::size_t work = 0;
  enum class Method { kAuto, kExhaustive, kPruned } method = Method::kAuto;
  // Evaluates candidates elsewhere (run_jobs) if that takes long: in exhaustive walks, for
  // confirmations, and in pruned walks some at a time, since later choices depend on earlier
  // findings. None: all in this process. The answer is the same.
  run::ParallelMap parallel_map;
  std::function<void(std::size_t, std::size_t)> progress = [](std::size_t, std::size_t) {};
  std::function<bool()> interrupted = [] { return false; };
  // The alternative (alternatives.h) that is written for a framework; empty: the best that was
  // found.
  std::string take;
  // For a Python file (`emit --python`): strategies that it cannot carry out are not offered.
  bool by_file = false;
  // Other schemes of the framework that fit. One is taken if no candidate of the search fits, or if
  // it is faster: by any clear difference in the baseline's dialect, else by kSchemeGain.
  std::vector<Strategy> schemes;
  // Returns the framework's strategy that replaces the best found; nullopt: the best stays.
  std::function<std::optional<Strategy>(const Strategy&)> in_framework;
};

// The best candidate of one configuration and one kind of fusion.
struct Ranked : measure::Prediction {  // with intervals if it is ranked
  Strategy strategy;                   // named in words
  FusionKind kind = FusionKind::kBase;
  std::optional<Seconds> confirmed = {};  // its step time by the confirming executor
};

// One size of buckets with the winner's other knobs, by the model.
struct CurvePoint {
  Bytes size = 0;
  Seconds step_time = 0;
};

struct Tuned {
  Strategy base;
  Ranked baseline;  // the scenario's own
  // The best first, which is the one to take: of those that no measurement could tell apart the
  // simplest, of a round size. Then the best of each other configuration and kind that takes
  // longer.
  std::vector<Ranked> ranking;
  Seconds fastest = 0;  // of all candidates, of whatever size
  std::map<FusionKind, Ranked> best_of_kind;
  std::optional<Ranked> best_explicit;
  std::optional<Ranked> best_threshold;  // of the kinds by size
  std::optional<Ranked> best_as_before;  // of those that train as without compression or LocalSGD
  std::optional<Ranked> best_changed;    // of those that change the training
  std::optional<Ranked> outside;         // shorter than the framework's best, which is the winner
  bool in_framework = false;  // the winner is the framework's; others of the ranking are not
  bool confirmed_all = true;  // all that the search asked for, and the baseline
  // Step time of the best contiguous fusion with the winner's knobs on one stream. `optimum_exact`:
  // it is proved to be the best there is (studies/tune/configuration.h).
  Seconds one_stream_optimum = 0;
  bool optimum_exact = false;
  Strategy optimum_strategy;
  // Fastest step time that is known: one_stream_optimum, or that of a candidate with more streams.
  // No other fusion is faster than lower_bound.
  Seconds optimum = 0;
  Seconds lower_bound = 0;  // of the winner's knobs, at any fusion and number of streams
  std::vector<CurvePoint> curve;
  // Returns the strategy of a point on the curve.
  std::function<Strategy(Bytes size)> curve_strategy;
  // Strategies of the scenario, and algorithms, that were left out: unlike the base's, their
  // collectives were not measured.
  std::vector<std::string> unmeasured;
  std::size_t points = 0;       // candidates in the space
  std::size_t evaluations = 0;  // of them evaluated
  bool exhaustive = false;
  bool complete = true;    // false: stopped by budget or interruption
  Seconds left_bound = 0;  // then: lower bound of all candidates that were left

  const Ranked& winner() const { return ranking.front(); }
};

// Requires a validated scenario; `search` as read for it.
Tuned tune(const Scenario& scenario, const Search& search, const TuneOptions& options);

// Returns the percentage above: 100 * (found / best - 1).
double percent_above(Seconds found, Seconds best);

}  // namespace syncline::tune
