#include "studies/questions/explain.h"

#include <utility>

#include "studies/questions/strategies.h"
#include "studies/study/study_calibration.h"

namespace syncline::questions {

Arguments arguments_of(Explain& question) {
  return {{.name = "strategy",
           .value = &question.strategies,
           .help = "strategies to explain; may be repeated (default: all)"}};
}

measure::Explanation answer(const Explain& question, const input::Document& given) {
  const auto [document, fit_errors] = measure::calibrate_document(given);
  Scenario scenario = input::parse_scenario(document);
  std::vector<std::string> names;
  for (const auto& one : chosen_strategies(scenario, question.strategies, document.file)) {
    names.push_back(one.name);
  }
  return measure::explain_strategies(document, std::move(scenario), names, fit_errors);
}

}  // namespace syncline::questions
