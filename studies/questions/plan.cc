#include "studies/questions/plan.h"

#include "core/metrics/phases.h"
#include "studies/questions/strategies.h"
#include "studies/rows/fabric_jobs.h"
#include "studies/study/study_calibration.h"

namespace syncline::questions {

Arguments arguments_of(PlanQuestion& question) {
  return {
      {.name = "strategy", .value = &question.strategy, .help = "strategy (default: the first)"}};
}

Planned answer(const PlanQuestion& question, const input::Document& given) {
  const input::Document document = measure::calibrate_document(given).document;
  Planned planned{input::parse_scenario(document), {}, {}, {}};
  const Scenario& scenario = planned.scenario;
  planned.strategy = chosen_strategy(scenario, question.strategy, document.file);
  const Cluster cluster = measure::cluster_left(scenario, planned.strategy);
  for (const auto& phase : measure::planned_phases(planned.strategy, scenario.training)) {
    if (phase.point.tick_phase > 0) continue;
    planned.phases.push_back(
        {plan::make_plan(scenario.workload, cluster, planned.strategy, phase.point), phase.steps});
  }
  planned.warnings = warnings_here(document, {planned.strategy});
  return planned;
}

}  // namespace syncline::questions
