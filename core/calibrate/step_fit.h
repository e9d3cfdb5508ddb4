// What a device loses to data-parallel training, fitted to measured steps of the job: how much
// computation and exchanges slow each other down, and what each step costs besides.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <Eigen/Dense>

#include "core/input/document.h"
#include "core/measure/row_evaluator.h"
#include "core/run/executor.h"

namespace syncline::calibrate {

// A published step time, with the model's own before and after the fit.
struct StepRow {
  measure::RowKey key;
  std::size_t place = 0;  // in the scenario's `published`
  Seconds measured = 0;
  Seconds before = 0;
  Seconds after = 0;
  bool fitted = false;  // else it was left out, and is predicted
};

// A key of cluster.device, in that key's own unit.
struct StepFigure {
  std::string key;
  double before = 0;
  double value = 0;
  // 80 % of what is left to be expected.
  double low = 0;
  double high = 0;
  bool told = false;  // the fitted rows say more of it than was known without them
};

struct StepFit {
  std::string scenario;
  std::vector<StepRow> rows;
  std::vector<StepFigure> figures;
  std::vector<std::string> notes;  // what these rows cannot tell
  // The scenario with these values, its fitted rows marked as calibrated.
  input::Document fitted;
};

// Fits the rows that `rows` names: strategies, or rows by their whole names (measure::name_of), or
// one number N for the first N. Empty: the rows that are marked as calibrated, or else the first
// two. Deterministic. Throws InputError for a scenario without step times, with a calibration of
// its own or with several devices, and for rows that are not there.
StepFit fit_steps(const input::Document& document, const std::vector<std::string>& rows = {});

// What is to be believed of what a device loses, once steps were measured: the prior of
// core/scenario/cluster.h and the rows that are fitted, on axes on which values may be anything.

// The step times of a scenario's rows as functions of what the device loses to data-parallel
// training: the closed-form model, without reading the scenario again.
struct Losses {
  Overlap overlap;
  Seconds overhead = 0;  // of each step
};

class StepModel {
 public:
  // The document must outlive this.
  explicit StepModel(const input::Document& document);

  // The cluster at the first sweep point; its device is that of all points.
  const Cluster& cluster() const { return scenario_.cluster; }
  const Scenario& scenario() const { return scenario_; }

  // Throws InputError where the row's sweep point makes the scenario wrong.
  Seconds step(const measure::RowKey& key, const Losses& losses);
  // Samples of all ranks in a step of the row.
  double samples(const measure::RowKey& key);

 private:
  struct PosteriorPoint {
    SweepPoint values;
    Scenario scenario;
    std::shared_ptr<collective::CostCache> cache;
    std::unique_ptr<run::Executor> model;
  };
  PosteriorPoint& point_of(const measure::RowKey& key);

  const input::Document& document_;
  Scenario scenario_;
  std::vector<PosteriorPoint> points_;
};

// One value: the logarithm of what it is over what was believed, or what it is above what was
// given, in units of what is to be expected.
struct PosteriorAxis {
  enum class What { kSlowdown, kDelay, kOverhead } what;
  Seconds centre = 0;  // what was believed; a share, of the slowdown
  // Standard deviations of what was believed, below and above; linear axes have none.
  double below = 1;
  double above = 1;
  Seconds scale = 1;  // of a linear axis

  bool linear() const { return what == What::kOverhead; }
  double value(double x) const;
  // The square is -2 log of the prior, but for a constant.
  double penalty(double x) const;
  // How much is known without rows: one over the square of a standard deviation.
  double precision(double x, bool lower) const;
  double least() const;
  double most() const;
};

struct MeasuredStep {
  measure::RowKey key;
  Seconds step = 0;
};

class StepPosterior {
 public:
  // The model must outlive this. Requires a row.
  StepPosterior(StepModel& model, std::vector<MeasuredStep> rows);

  // The overhead comes last.
  const std::vector<PosteriorAxis>& axes() const { return axes_; }
  Losses losses(const std::vector<double>& place) const;

  std::vector<double> likeliest() const;
  // What the rows alone say about a place: the Gauss-Newton approximation.
  Eigen::MatrixXd information(const std::vector<double>& place) const;
  // What is still open of the axes, as far as values may be lower, or higher.
  Eigen::MatrixXd covariance(const Eigen::MatrixXd& information, const std::vector<double>& place,
                             bool lower) const;

 private:
  // log(predicted / measured), in standard deviations.
  std::vector<double> misses(const std::vector<double>& place) const;
  // The same with the penalties: the sum of the squares is least at the likeliest place.
  std::vector<double> residuals(const std::vector<double>& place) const;

  StepModel& model_;
  std::vector<MeasuredStep> rows_;
  std::vector<PosteriorAxis> axes_;
};

}  // namespace syncline::calibrate
