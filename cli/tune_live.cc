#include "cli/tune_live.h"

#include <iostream>
#include <memory>

#include "cli/executors.h"
#include "cli/exit.h"
#include "cli/live_words.h"
#include "cli/output.h"
#include "core/fingerprint.h"
#include "core/input/read_scenario.h"
#include "core/measure/study.h"
#include "core/tune/emulated_search.h"
#include "core/tune/search_space.h"
#include "live/link_calibration.h"
#include "live/ranks_search.h"
#include "reports/format.h"
#include "reports/live_report.h"

namespace syncline::cli {
namespace {

// Which machine the search believes in is part of what it is.
std::string identity(const input::Document& document, const LiveVerbOptions& options) {
  return document.root.dump() + "\n" + options.wrong;
}

// A search as the options have it: its report before anything was measured, and its journal.
class LiveVerb {
 public:
  LiveVerb(const LiveVerbOptions& options, const input::Document& document)
      : options_(options), document_(document) {}

  tune::LiveReport begin(const input::Document& fitted, const Scenario& scenario) const {
    const auto own = input::parse_search(fitted, scenario);
    const tune::GuideFactors error = guide_error(options_.wrong);
    tune::LiveReport report = tune::begin_report(
        scenario, own ? *own : tune::default_search(scenario), error, options_.exhaustive);
    report.guide = guide_words(error);
    report.settings.search.budget = static_cast<int>(options_.budget);
    report.settings.search.steps = options_.steps;
    report.settings.seed = options_.seed;
    report.settings.interrupted = interrupted;
    return report;
  }

  // nullptr: nothing is kept.
  tune::Journal* open_journal(const tune::LiveReport& report, const tune::LiveObjective& machine) {
    if (options_.journal.empty()) return nullptr;
    const Json header = tune::journal_header(identity(document_, options_), report.problem,
                                             report.settings, machine);
    journal_ = std::make_unique<tune::Journal>(options_.journal, header);
    const std::size_t known = journal_->entries().size();
    if (known > 0) {
      say("resumed: " + reports::plural(known, "evaluation") + " from " + options_.journal);
    }
    return journal_.get();
  }

  // Prints the answer, and how to go on where the search was interrupted.
  int answer(tune::ModelTruth& truth, tune::LiveReport& report) const {
    if (!options_.emit.empty()) {
      report.emitted_dialect = options_.emit;
      report.emitted = truth.emitted(*dialect::find_dialect(options_.emit), report);
    }
    print(reports::answer_of(report), options_.format);
    if (report.tuning.complete) return 0;
    say(tune::resume_advice(report.tuning, report.settings.search, journal_.get(),
                            options_.command));
    return kInterruptedExit;
  }

 private:
  const LiveVerbOptions& options_;
  const input::Document& document_;
  std::unique_ptr<tune::Journal> journal_;
};

int tune_on_ranks(const LiveVerbOptions& options, const input::Document& fitted, LiveVerb& verb,
                  live::ControlChannel& channel) {
  Scenario scenario = input::parse_scenario(fitted);
  require_ranks(channel, fitted, scenario.cluster);
  const bool first = channel.rank() == 0;
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
    return tune_emulated(options, measure::calibrated(document), verb);
  }
  const std::string key =
      fingerprint(identity(document, options) + options.machine + std::to_string(options.steps));
  return with_ranks(options.ranks, key, [&](live::ControlChannel& channel) {
    return tune_on_ranks(options, measure::calibrated(document), verb, channel);
  });
}

}  // namespace syncline::cli
