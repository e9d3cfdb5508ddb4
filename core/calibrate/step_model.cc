#include "core/calibrate/step_model.h"

#include <algorithm>

#include "core/input/read_scenario.h"
#include "core/measure/metrics.h"
#include "core/measure/price_strategy.h"
#include "core/run/interference.h"
#include "core/run/model_executor.h"

namespace syncline::calibrate {

StepModel::StepModel(const input::Document& document)
    : document_(document),
      scenario_(
          measure::at_point(document, sweep_points(input::parse_scenario(document)).front())) {}

Seconds StepModel::step(const measure::RowKey& key, const Losses& losses) {
  Point& point = point_of(key);
  Device& device = point.scenario.cluster.device;
  device.overlap = losses.overlap;
  device.data_parallel_overhead = losses.overhead;
  Seconds sum = 0;
  double steps = 0;
  measure::for_each_phase(
      point.scenario, *find_strategy(point.scenario, key.strategy), point.model->traits(),
      [&](measure::Phase& phase) {
        const plan::Plan plan = run::with_interference(std::move(phase.plan), device, *point.book);
        const auto outcome = point.model->run(plan, {}, phase.periods);
        sum += phase.steps * measure::step_time_of(plan, outcome.timeline, phase.warmup);
        steps += phase.steps;
      });
  return sum / steps;
}

double StepModel::samples(const measure::RowKey& key) {
  const Scenario& scenario = point_of(key).scenario;
  return static_cast<double>(samples_of(scenario.workload)) * scenario.cluster.ranks();
}

StepModel::Point& StepModel::point_of(const measure::RowKey& key) {
  const auto known = std::find_if(points_.begin(), points_.end(),
                                  [&](const Point& point) { return point.values == key.point; });
  if (known != points_.end()) return *known;
  points_.push_back({key.point, measure::at_point(document_, key.point), nullptr, nullptr});
  Point& point = points_.back();
  // Prices depend on the network alone, which is the same whatever the device loses.
  point.book = std::make_shared<collective::PriceBook>(point.scenario.cluster);
  point.model = run::model_executor_on(point.book);
  return point;
}

}  // namespace syncline::calibrate
