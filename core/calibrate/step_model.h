// The step times of a scenario's rows as functions of what the device loses to data-parallel
// training: the closed-form model, without reading the scenario anew.
#pragma once

#include <memory>
#include <vector>

#include "core/input/document.h"
#include "core/measure/row_pricer.h"
#include "core/run/executor.h"

namespace syncline::calibrate {

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
  struct Point {
    SweepPoint values;
    Scenario scenario;
    std::shared_ptr<collective::PriceBook> book;
    std::unique_ptr<run::Executor> model;
  };
  Point& point_of(const measure::RowKey& key);

  const input::Document& document_;
  Scenario scenario_;
  std::vector<Point> points_;
};

}  // namespace syncline::calibrate
