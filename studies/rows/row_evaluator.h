// Evaluates a scenario's rows: one strategy at one sweep point each, with the values that a
// calibration has fitted, and the published figure of the row.
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

// Returns the seconds of one step's products on a rank at the rate of its device's data sheet; 0:
// unknown. Recomputation does not count.
double rated_seconds(const Scenario& scenario);

// Returns "cluster.nodes = 4, cluster.gpus_per_node = 8", for messages and for the names of rows.
std::string point_text(const SweepPoint& point);
std::string name_of(const RowKey& key);

// Returns true if a row's sweep point has all of the values in `part`.
bool matches_point(const SweepPoint& point, const SweepPoint& part);

// Returns the published figure of a row: all of its sweep values must be the row's.
std::optional<Published> find_published(const Scenario& scenario, const RowKey& key);

// Returns the relative error of a prediction against the row's first published figure.
std::optional<double> relative_error(const Row& row);

// Returns the scenario at a point. Throws InputError, naming the point, if that makes it wrong.
Scenario at_point(input::Document document, const SweepPoint& point);

// Returns the document for at_point. Each point copies and checks all of it; the sweep is dropped
// unless another part of the document refers to it.
input::Document without_sweep(input::Document document);

// Returns the document with the fitted values that hold at a sweep point.
input::Document with_fitted(input::Document document, const std::vector<Fitted>& fitted,
                            const SweepPoint& point);

// Evaluates rows. Stores the current point with its baseline and costs, so rows of one point should
// be consecutive.
class RowEvaluator {
 public:
  // Stores the inputs. `fit_errors`: those of the fitted values; nullopt: rows without intervals
  // and lower bounds, for fits that evaluate the same row many times.
  RowEvaluator(const input::Document& document, std::vector<Fitted> fitted, ExecutorFactory factory,
               std::optional<FitErrors> fit_errors);
  ~RowEvaluator();
  RowEvaluator(const RowEvaluator&) = delete;
  RowEvaluator& operator=(const RowEvaluator&) = delete;

  // Evaluates a row; writes its plan and timeline to `traced`, if given.
  Row cost(const RowKey& key, Traced* traced = nullptr);

 private:
  class PointStudy;

  const input::Document document_;
  std::vector<Fitted> fitted_;
  ExecutorFactory factory_;
  std::optional<FitErrors> fit_errors_;
  std::unique_ptr<PointStudy> study_;  // study of the current point
};

// Choice of timelines: strategies of a scenario at any of its sweep points, on any ranks.
// Requires that the sweep point, strategies of these names and that number of ranks exist.
struct TraceChoice {
  SweepPoint point;
  std::vector<std::string> strategies;
  std::vector<int> ranks;  // empty: those that the executor shows by default
};

// Returns the workload and the timelines of the choice as a report without rows. `report`: of the
// scenario in `document`; its name and fitted values are used.
Report chosen_timelines(const input::Document& document, const TraceChoice& choice,
                        const ExecutorFactory& factory, const Report& report);

}  // namespace syncline::measure
