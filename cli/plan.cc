#include <memory>

#include "cli/cost.h"
#include "cli/output.h"
#include "cli/strategy_option.h"
#include "cli/verbs.h"
#include "core/input/document.h"
#include "core/input/read_scenario.h"
#include "reports/plan_report.h"

namespace syncline::cli {
namespace {

struct PlanOptions {
  std::string file;
  std::string strategy;
  OutputFormat format;
};

int run(const PlanOptions& options) {
  const Scenario scenario = input::parse_scenario(input::read_document(options.file));
  const Strategy& strategy = chosen_strategy(scenario, options.strategy, options.file);
  announce(scenario, measure::Answer::kPlan);
  const reports::Planned planned = reports::planned(scenario, strategy);
  print(reports::answer_of(planned), options.format);
  return 0;
}

}  // namespace

VerbAction add_plan(CLI::App& app) {
  auto options = std::make_shared<PlanOptions>();
  auto* verb =
      app.add_subcommand("plan", "Print the operations of a strategy without running them");
  verb->add_option("file", options->file, "the scenario (JSON); its sweep is ignored")->required();
  verb->add_option("--strategy", options->strategy, "which strategy; the first one if left out");
  add_format(*verb, options->format);
  return [options] { return run(*options); };
}

}  // namespace syncline::cli
