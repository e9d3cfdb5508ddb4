// Scenarios carried out in a test: whole studies, and what one strategy costs by the model.
#pragma once

#include <string>
#include <vector>

#include "core/executor.h"
#include "formats/input/document.h"
#include "studies/study/study.h"
#include "studies/warnings/warnings.h"

namespace syncline::test {

inline measure::StudyOptions study_options(
    measure::ExecutorFactory executor = run::make_model_executor) {
  measure::StudyOptions options;
  options.make_executor = std::move(executor);
  return options;
}

inline measure::Report studied(const input::Document& document,
                               measure::ExecutorFactory executor = run::make_model_executor) {
  return measure::run_study(document, study_options(std::move(executor)));
}

inline measure::Report studied(const Json& root,
                               measure::ExecutorFactory executor = run::make_model_executor) {
  return studied(input::document_from_text("study.json", root.dump()), std::move(executor));
}

// A file of scenarios/, without its ending.
inline measure::Report studied_file(const std::string& name) {
  return studied(input::read_document(SYNCLINE_SOURCE_DIR "/scenarios/" + name + ".json"));
}

// What is said of a document, over its sweep.
inline std::vector<std::string> warnings_in(const Json& scenario) {
  const auto document = input::document_from_text("x.json", scenario.dump());
  const Scenario read = input::parse_scenario(document);
  return measure::warnings_of(document, read, Sweep(read));
}

inline measure::Evaluated evaluated(const Scenario& scenario, const Strategy& strategy) {
  const auto executor = run::make_model_executor({scenario.cluster, {}, 1});
  collective::CostCache cache(scenario.cluster);
  return measure::evaluate_strategy(scenario, strategy, *executor, cache);
}

inline Seconds step_time(const Scenario& scenario, const Strategy& strategy) {
  return evaluated(scenario, strategy).metrics.step_time;
}

}  // namespace syncline::test
