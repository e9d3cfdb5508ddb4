
#include "cli/options.h"
#include "formats/input/document.h"
#include "reports/explain_report.h"
#include "reports/run_report.h"
#include "studies/explain/explanation.h"
#include "studies/study/study_calibration.h"

namespace syncline::cli {
namespace {

int print_explanation(const StrategyOptions& options) {
  const auto [document, fit_errors] = measure::calibrated(read(options.scenario));
  Scenario scenario = input::parse_scenario(document);
  std::vector<std::string> names;
  if (options.strategy.empty()) {
    for (const auto& strategy : scenario.strategies) names.push_back(strategy.name);
  } else {
    names.push_back(chosen_strategy(scenario, options.strategy, document.file).name);
  }
  expect_writable({options.output.html});
  const auto explanation = measure::explained(document, std::move(scenario), names, fit_errors);
  answer_with({}, reports::answer_of(explanation), options.output);
  return 0;
}

}  // namespace

VerbAction add_explain(CLI::App& app) {
  return add_strategy_verb(app, "explain",
                           "Explain each strategy's bottleneck and the best changes", "all",
                           print_explanation, true);
}

}  // namespace syncline::cli
