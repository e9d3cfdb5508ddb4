#include "cli/tune_live.h"

#include "cli/executors.h"
#include "cli/files.h"
#include "cli/live_verb.h"
#include "cli/live_words.h"
#include "core/fingerprint.h"
#include "core/input/read_scenario.h"
#include "core/measure/study.h"
#include "core/tune/emulated_search.h"
#include "live/link_calibration.h"
#include "live/ranks_search.h"

namespace syncline::cli {
namespace {

int tune_on_ranks(const LiveVerbOptions& options, const input::Document& fitted, LiveVerb& verb,
                  live::ControlChannel& channel) {
  Scenario scenario = input::parse_scenario(fitted);
  scenario.cluster.device.overlap = {};  // timers stand in for what exchanges would slow
  require_ranks(channel, fitted, scenario.cluster);
  const bool first = channel.rank() == 0;
  if (first) expect_writable({options.html});
  live::RanksSearch search;
  search.machine.backend_name = options.machine;
  search.machine.backend = backend_named(options.machine).make;
  search.machine.check_values = !options.no_check;
  search.sweep = options.exhaustive;
  if (options.calibrate) {
    if (first) say("calibrating the links");
    const auto found = live::calibrate_links(channel, search.machine.backend, scenario.cluster, {});
    scenario.cluster = found.cluster;
  }
  if (first) say("ranking the candidates by the model");
  tune::LiveReport report = verb.begin(fitted, scenario);
  live::RanksSearchHooks hooks;
  hooks.journal = [&](const tune::LiveObjective& machine) {
    return verb.open_journal(report, machine);
  };
  hooks.evaluation = announced("evaluation", "at most " + std::to_string(options.budget));
  hooks.sweeping = [] { say("every candidate, to see how good that is"); };
  hooks.swept = announced("sweep", std::to_string(report.problem.candidates.size()));
  live::search_on_ranks(search, scenario, channel, hooks, report);
  if (!first) return 0;
  tune::ModelTruth model(scenario);
  return verb.answer(model, report);
}

int tune_emulated(const LiveVerbOptions& options, const input::Document& fitted, LiveVerb& verb) {
  expect_writable({options.html});
  const Scenario scenario = input::parse_scenario(fitted);
  say("ranking the candidates by the model");
  tune::LiveReport report = verb.begin(fitted, scenario);
  tune::EmulatedSearch search;
  search.noise = options.noise / 100;
  search.evaluation =
      announced("evaluation", "at most " + std::to_string(options.budget), options.pace);
  search.journal = [&](const tune::LiveObjective& machine) {
    return verb.open_journal(report, machine);
  };
  tune::ModelTruth truth(scenario);
  tune::search_emulated(search, truth, report);
  return verb.answer(truth, report);
}

}  // namespace

int tune_live_verb(const LiveVerbOptions& options, const input::Document& document) {
  check_live_options(options);
  LiveVerb verb(options, document);
  if (options.machine == "emulated") {
    return tune_emulated(options, measure::calibrated(document).document, verb);
  }
  const std::string key =
      fingerprint(identity(document, options) + options.machine + std::to_string(options.steps));
  return with_ranks(options.ranks, key, [&](live::ControlChannel& channel) {
    return tune_on_ranks(options, measure::calibrated(document).document, verb, channel);
  });
}

}  // namespace syncline::cli
