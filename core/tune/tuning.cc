#include "core/tune/tuning.h"

#include <algorithm>

namespace syncline {

Tuning tune_document(const Document& document, const TuneOptions& options,
                     const std::string& confirmed_by, const Dialect* emit) {
  const Document fitted = calibrated(document);
  Tuning tuning;
  tuning.scenario = parse_scenario(fitted);
  const Scenario& scenario = tuning.scenario;
  tuning.calibrated = !scenario.calibration.parameters.empty();
  const auto own = parse_search(fitted, scenario);
  tuning.own_search = own.has_value();
  tuning.search = own ? *own : default_search(scenario);
  tuning.executor = options.executor;
  tuning.confirmed_by = options.confirm && tuning.search.confirm > 0 ? confirmed_by : "";
  tuning.tuned = tune(scenario, tuning.search, options);

  const auto model = make_model_executor({scenario.cluster, scenario.simulation, scenario.seed});
  PriceBook book(scenario.cluster);
  const Strategy& winner = tuning.tuned.winner().strategy;
  tuning.binding = binding_of(scenario, winner, *model, book);
  tuning.defaults = framework_defaults(scenario, tuning.tuned.base, *model, book);
  for (const auto& strategy : scenario.strategies) {
    const bool compared = !strategy.compression.codec.empty();
    if (!compared || changes_training(tuning.tuned.baseline.strategy)) continue;
    for (const auto& even : {bandwidth_break_even(fitted, strategy.name, scenario.baseline),
                             nodes_break_even(fitted, strategy.name, scenario.baseline)}) {
      if (even) tuning.break_evens.push_back(*even);
    }
  }
  tuning.averaging = averaging_of(scenario, *model, book);
  if (emit != nullptr) {
    tuning.emitted_dialect = emit->name;
    tuning.emitted = best_config(*emit, winner, scenario, *model, book);
  }
  return tuning;
}

}  // namespace syncline
