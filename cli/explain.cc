#include <memory>

#include "cli/options.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "core/input/document.h"
#include "core/measure/explanation.h"
#include "core/measure/study_calibration.h"
#include "reports/run_report.h"

namespace syncline::cli {
namespace {

struct ExplainOptions {
  ScenarioOption scenario;
  std::string strategy;
  Output output;
};

int run(const ExplainOptions& options) {
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
  auto options = std::make_shared<ExplainOptions>();
  auto* verb =
      app.add_subcommand("explain", "Explain each strategy's bottleneck and the best changes");
  add_scenario(*verb, options->scenario, "its sweep is ignored");
  add_strategy(*verb, options->strategy, "all");
  add_format(*verb, options->output);
  add_html(*verb, options->output);
  return [options] { return run(*options); };
}

}  // namespace syncline::cli
