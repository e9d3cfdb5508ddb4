#include <cmath>
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
  const auto executor = run::make_model_executor({scenario.cluster, {}, scenario.seed});
  collective::PriceBook book(scenario.cluster);
  const auto priced = [&](const Strategy& one) {
    return measure::price_strategy(scenario, one, *executor, book);
  };
  const auto wanted = priced(strategy);
  const auto found = priced(written->strategy);
  const std::string times = reports::seconds_text(found.metrics.step_time) + " a step instead of " +
                            reports::seconds_text(wanted.metrics.step_time);
  if (!written->exact) {
    throw InputError("strategy '" + strategy.name + "' cannot be expressed in " + options.dialect +
                     ": the nearest configuration is " + written->config.dump() + ", but " +
                     written->difference + " (" + times + ")");
  }
  std::cout << written->config.dump(2) << "\n";
  const Seconds off = std::abs(found.metrics.step_time - wanted.metrics.step_time);
  if (off > 1e-9 * wanted.metrics.step_time) {
    std::cerr << "syncline: the same exchange, but " +
                     dialect::time_difference(wanted.plan, found.plan)
              << " (" << times << ")\n";
  }
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
      ->check(CLI::IsMember(dialect::written_dialect_names()));
  return [options] { return run(*options); };
}

}  // namespace syncline::cli
