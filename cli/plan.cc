#include <memory>

#include "cli/options.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "core/input/document.h"
#include "core/measure/study_calibration.h"
#include "reports/plan_report.h"

namespace syncline::cli {
namespace {

struct PlanOptions {
  ScenarioOption scenario;
  std::string strategy;
  Output output;
};

int run(const PlanOptions& options) {
  const input::Document document = measure::calibrated(read(options.scenario)).document;
  const Scenario scenario = input::parse_scenario(document);
  const Strategy& strategy = chosen_strategy(scenario, options.strategy, document.file);
  const reports::Planned planned = reports::planned(scenario, strategy);
  reports::Answer answer = reports::answer_of(planned);
  answer.warnings = warnings_here(document, {strategy});
  print(answer, options.output);
  return 0;
}

}  // namespace

VerbAction add_plan(CLI::App& app) {
  auto options = std::make_shared<PlanOptions>();
  auto* verb =
      app.add_subcommand("plan", "Print the operations of a strategy, without running them");
  add_scenario(*verb, options->scenario, "its sweep is ignored");
  add_strategy(*verb, options->strategy, "the first");
  add_format(*verb, options->output);
  return [options] { return run(*options); };
}

}  // namespace syncline::cli
