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

namespace syncline {
namespace {

// Which machine the search believes in is part of what it is.
std::string identity(const Document& document, const LiveVerbOptions& options) {
  return document.root.dump() + "\n" + options.wrong;
}

// A search as the options have it: its report before anything was measured, and its journal.
class LiveVerb {
 public:
  LiveVerb(const LiveVerbOptions& options, const Document& document)
      : options_(options), document_(document) {}

  LiveReport begin(const Document& fitted, const Scenario& scenario) const {
    const auto own = parse_search(fitted, scenario);
    const GuideFactors error = guide_error(options_.wrong);
    LiveReport report =
        begin_report(scenario, own ? *own : default_search(scenario), error, options_.exhaustive);
    report.guide = guide_words(error);
    report.settings.search.budget = static_cast<int>(options_.budget);
    report.settings.search.steps = options_.steps;
    report.settings.seed = options_.seed;
    report.settings.interrupted = interrupted;
    return report;
  }

  // nullptr: nothing is kept.
  Journal* open_journal(const LiveReport& report, const LiveObjective& machine) {
    if (options_.journal.empty()) return nullptr;
    const Json header =
        journal_header(identity(document_, options_), report.problem, report.settings, machine);
    journal_ = std::make_unique<Journal>(options_.journal, header);
    const std::size_t known = journal_->entries().size();
    if (known > 0) say("resumed: " + plural(known, "evaluation") + " from " + options_.journal);
    return journal_.get();
  }

  // Prints the answer, and how to go on where the search was interrupted.
  int answer(ModelTruth& truth, LiveReport& report) const {
    if (!options_.emit.empty()) {
      report.emitted_dialect = options_.emit;
      report.emitted = truth.emitted(*find_dialect(options_.emit), report);
    }
    print(answer_of(report), options_.format);
    if (report.tuning.complete) return 0;
    say(resume_advice(report.tuning, report.settings.search, journal_.get(), options_.command));
    return kInterruptedExit;
  }

 private:
  const LiveVerbOptions& options_;
  const Document& document_;
  std::unique_ptr<Journal> journal_;
};

int tune_on_ranks(const LiveVerbOptions& options, const Document& fitted, LiveVerb& verb,
                  ControlChannel& channel) {
  Scenario scenario = parse_scenario(fitted);
  require_ranks(channel, fitted, scenario.cluster);
  const bool first = channel.rank() == 0;
  RanksSearch search;
  search.machine.backend_name = options.machine;
  search.machine.backend = backend_named(options.machine).make;
  search.machine.check_values = !options.no_check;
  search.sweep = options.exhaustive;
  if (options.calibrate) {
    if (first) say("calibrating the links");
    const auto found = calibrate_links(channel, search.machine.backend, scenario.cluster, {});
    scenario.cluster = found.cluster;
  }
  if (first) say("ranking the candidates by the model");
  LiveReport report = verb.begin(fitted, scenario);
  RanksSearchHooks hooks;
  hooks.journal = [&](const LiveObjective& machine) { return verb.open_journal(report, machine); };
  hooks.evaluation = announced("evaluation", "at most " + std::to_string(options.budget));
  hooks.sweeping = [] { say("every candidate, to see how good that is"); };
  hooks.swept = announced("sweep", std::to_string(report.problem.candidates.size()));
  search_on_ranks(search, scenario, channel, hooks, report);
  if (!first) return 0;
  ModelTruth model(scenario);
  return verb.answer(model, report);
}

int tune_emulated(const LiveVerbOptions& options, const Document& fitted, LiveVerb& verb) {
  const Scenario scenario = parse_scenario(fitted);
  say("ranking the candidates by the model");
  LiveReport report = verb.begin(fitted, scenario);
  EmulatedSearch search;
  search.noise = options.noise / 100;
  search.evaluation =
      announced("evaluation", "at most " + std::to_string(options.budget), options.pace);
  search.journal = [&](const LiveObjective& machine) { return verb.open_journal(report, machine); };
  ModelTruth truth(scenario);
  search_emulated(search, truth, report);
  return verb.answer(truth, report);
}

}  // namespace

int tune_live_verb(const LiveVerbOptions& options, const Document& document) {
  check_live_options(options);
  LiveVerb verb(options, document);
  if (options.machine == "emulated") return tune_emulated(options, calibrated(document), verb);
  const std::string key =
      fingerprint(identity(document, options) + options.machine + std::to_string(options.steps));
  return with_ranks(options.ranks, key, [&](ControlChannel& channel) {
    return tune_on_ranks(options, calibrated(document), verb, channel);
  });
}

}  // namespace syncline
