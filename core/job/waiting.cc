#include "core/job/waiting.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/input/document.h"
#include "core/measure/study.h"
#include "core/run/model_executor.h"

namespace syncline::job {

Seconds unexplained_waiting(const Json& scenario, const Step& step) {
  if (step.exposed <= 0) return 0;
  Json first = scenario;
  first["strategies"] = Json::array({scenario.at("strategies").at(0)});
  measure::StudyOptions study;
  study.make_executor = run::make_model_executor;
  const measure::Report report =
      measure::run_study(input::document_from_text("the imported scenario", first.dump()), study);
  const Seconds predicted = report.rows.front().metrics.step_time;
  return std::clamp(step.gpu - predicted, 0.0, step.exposed);
}

}  // namespace syncline::job
