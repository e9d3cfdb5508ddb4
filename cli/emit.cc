#include <iostream>
#include <memory>

#include "cli/strategy_option.h"
#include "cli/verbs.h"
#include "core/dialect/write.h"
#include "core/error.h"
#include "core/input/document.h"
#include "core/input/read_scenario.h"
#include "core/measure/study.h"
#include "core/run/model_executor.h"
#include "reports/format.h"

namespace syncline::cli {
namespace {

struct EmitOptions {
  std::string file;
  std::string strategy;
  std::string dialect;
};

int run(const EmitOptions& options) {
  const input::Document document = input::read_document(options.file);
  const Scenario scenario = input::parse_scenario(document);
  const Strategy& strategy = chosen_strategy(scenario, options.strategy, options.file);
  const auto written = dialect::write_config(*dialect::find_dialect(options.dialect), strategy,
                                             scenario.workload, scenario.cluster);
  if (!written) {
    throw InputError("--dialect: " + options.dialect + " can be read, but not written yet");
  }
  if (!written->exact) {
    const auto executor = run::make_model_executor({scenario.cluster, {}, scenario.seed});
    collective::PriceBook book(scenario.cluster);
    const auto step = [&](const Strategy& priced) {
      return reports::seconds_text(
          measure::price_strategy(scenario, priced, *executor, book).metrics.step_time);
    };
    throw InputError("strategy '" + strategy.name + "' cannot be expressed in " + options.dialect +
                     ": the nearest configuration is " + written->config.dump() + ", but " +
                     written->difference + " (" + step(written->strategy) + " a step instead of " +
                     step(strategy) + ")");
  }
  std::cout << written->config.dump(2) << "\n";
  if (!written->setting.empty()) {
    std::cerr << "syncline: run it with " << written->setting << "\n";
  }
  if (!written->algorithm.empty()) {
    std::cerr << "syncline: a framework's configuration does not say how collectives move their "
                 "data; to price it here, write \"algorithm\": \""
              << written->algorithm << "\" beside the dialect\n";
  }
  return 0;
}

}  // namespace

VerbAction add_emit(CLI::App& app) {
  auto options = std::make_shared<EmitOptions>();
  auto* verb =
      app.add_subcommand("emit", "Write a strategy as a framework's configuration, to paste there");
  verb->add_option("file", options->file, "the scenario (JSON); its sweep is ignored")->required();
  verb->add_option("--strategy", options->strategy, "which strategy; the first one if left out");
  verb->add_option("--dialect", options->dialect, "the framework")
      ->required()
      ->check(CLI::IsMember(dialect::dialect_names()));
  return [options] { return run(*options); };
}

}  // namespace syncline::cli
