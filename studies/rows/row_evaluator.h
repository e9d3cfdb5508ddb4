// A scenario's rows, evaluated: one strategy at one sweep point each, with the values that a
// calibration has fitted, and beside it what was published for it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/metrics.h"
#include "formats/input/document.h"
#include "formats/scenario/scenario.h"
#include "studies/rows/report.h"

namespace syncline::measure {

// A row by its place in the report.
struct RowKey {
  SweepPoint point;
  std::string strategy;
};

// "cluster.nodes = 4, cluster.gpus_per_node = 8": for people, and behind a row's strategy.
std::string point_text(const SweepPoint& point);
std::string name_of(const RowKey& key);

// Whether a row's sweep point has all of the values in `part`.
bool lies_at(const SweepPoint& point, const SweepPoint& part);

// The published figure of a row: all of the published sweep values must be the row's.
std::optional<Published> published_for(const Scenario& scenario, const RowKey& key);

// Relative error of a prediction against the first figure that was published for it.
std::optional<double> relative_error(const Row& row);

// Throws InputError, naming the point, where its values make the scenario wrong.
Scenario at_point(input::Document document, const SweepPoint& point);

// The document for at_point: each point copies and judges all of it, and needs no sweep of its own
// unless something else in the document refers to it.
input::Document without_sweep(input::Document document);

// The document with the fitted values that hold at a sweep point.
input::Document with_fitted(input::Document document, const std::vector<Fitted>& fitted,
                            const SweepPoint& point);

// Evaluates rows. The point at hand is kept, its baseline and costs too: rows of one point should
// come one after the other.
class RowEvaluator {
 public:
  // `fit_errors`: of the fitted values; nothing: rows without intervals and lower bounds, for fits
  // that evaluate the same row many times.
  RowEvaluator(const input::Document& document, std::vector<Fitted> fitted, ExecutorFactory factory,
               std::optional<FitErrors> fit_errors);
  ~RowEvaluator();
  RowEvaluator(const RowEvaluator&) = delete;
  RowEvaluator& operator=(const RowEvaluator&) = delete;

  // Its plan and timeline go to `traced` where that is given.
  Row cost(const RowKey& key, Traced* traced = nullptr);

 private:
  class PointStudy;

  const input::Document document_;
  std::vector<Fitted> fitted_;
  ExecutorFactory factory_;
  std::optional<FitErrors> fit_errors_;
  std::unique_ptr<PointStudy> study_;  // of the point at hand
};

// Timelines of what somebody wants to look at: strategies of a scenario at any one of its sweep
// points, on any of the ranks.
// All of it is there: the sweep point, strategies of these names, and as many ranks at that point.
struct TraceChoice {
  SweepPoint point;
  std::vector<std::string> strategies;
  std::vector<int> ranks;  // empty: those that the executor shows by itself
};

// The workload and the timelines of the choice, in the name of the report of the scenario in
// `document`, whose fitted values hold here too; it has no rows.
Report chosen_timelines(const input::Document& document, const TraceChoice& choice,
                        const ExecutorFactory& factory, const Report& report);

}  // namespace syncline::measure
