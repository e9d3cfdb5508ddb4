#include <memory>
#include <utility>

#include "cli/options.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "core/input/document.h"
#include "core/measure/warnings.h"
#include "reports/check_report.h"

namespace syncline::cli {
namespace {

struct CheckOptions {
  ScenarioOption scenario;
  std::vector<std::string> strategies;
  Output output;
};

int run(const CheckOptions& options) {
  const input::Document document = read(options.scenario);
  reports::Checked checked;
  checked.file = document.file;
  checked.scenario = input::parse_scenario(document);
  const Sweep sweep(checked.scenario);
  checked.points = sweep.size();
  Progress progress("syncline check");
  checked.warnings = measure::warnings_of(
      document, checked.scenario, sweep, [] { return false; },
      [&](std::size_t done, std::size_t wanted) { progress.update(done, wanted); });
  checked.scenario.strategies =
      chosen_strategies(checked.scenario, options.strategies, document.file);
  print(reports::answer_of(checked), options.output);
  return 0;
}

}  // namespace

VerbAction add_check(CLI::App& app) {
  auto options = std::make_shared<CheckOptions>();
  auto* verb = app.add_subcommand("check", "Validate a scenario at every sweep point");
  add_scenario(*verb, options->scenario);
  add_strategies(*verb, options->strategies,
                 "strategies to print notes on; may be repeated (default: all)");
  add_format(*verb, options->output);
  return [options] { return run(*options); };
}

}  // namespace syncline::cli
